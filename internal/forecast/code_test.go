package forecast

import (
	"fmt"
	"testing"
	"time"
)

func TestAUserCanPushOnlyTheirOwnCodeOut(t *testing.T) {
	var c codes
	key := func(uid, i int) string { return fmt.Sprintf("%d-%d", uid, i) }
	c.put(key(1, 0), &announced{uid: 1, at: start, vector: []float32{1}})
	for i := range 10 * maxCodesOfUser {
		at := start.Add(time.Duration(i) * time.Second)
		c.put(key(2, i), &announced{uid: 2, at: at, vector: []float32{2}})
	}
	if v, _ := c.get(key(1, 0), start, false); v == nil {
		t.Error("another user's code is gone")
	}
	if len(c.of) != maxCodesOfUser+1 {
		t.Errorf("%d are kept, want %d", len(c.of), maxCodesOfUser+1)
	}
	if v, _ := c.get(key(1, 0), start.Add(codeTrust+time.Second), false); v != nil {
		t.Error("it is believed for ever")
	}
}

func TestAUserCantFillTheQueueForServers(t *testing.T) {
	var c codes
	asked := 0
	for range askQueue {
		if c.tryBegin(2) {
			asked++
		}
	}
	if asked != maxAsksOfUser || asked >= askQueue || !c.tryBegin(1) {
		t.Errorf("a user has %d texts wait", asked)
	}
	c.end(2)
	if !c.tryBegin(2) || c.tryBegin(2) {
		t.Error("after an answer there is room for one")
	}
	for range maxAsksOfUser {
		c.end(2)
	}
	c.end(1)
	if len(c.asks) != 0 {
		t.Errorf("%v is left", c.asks)
	}
}
