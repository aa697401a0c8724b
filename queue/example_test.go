package queue_test

import (
	"fmt"
	"strings"

	"github.com/epplan/epplan/queue"
)

func ExampleRead() {
	const file = `id,workload,arrival_s,deadline_s,gpus
train,resnet50,0,7200,V100:1;*:2
infer,bert,60,50,1
`
	_, err := queue.Read(strings.NewReader(file), "jobs.csv", queue.Auto)
	fmt.Println(err)

	b, err := queue.Read(strings.NewReader(strings.Replace(file, ",50,", ",500,", 1)), "jobs.csv", queue.Auto)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, j := range b.Jobs {
		fmt.Println(j.Arrival, j.ID)
	}
	// Output:
	// jobs.csv:3:15: deadline_s is 50, before the arrival at 60, want a later one
	// 0 train
	// 60 infer
}
