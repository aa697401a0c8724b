package probe_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/epplan/epplan/internal/predict/source"
)

// drawnProgram is a program of the fixture's kind with what it takes, by the fixture's
// formula: there are as many as a test wants.
type drawnProgram struct {
	text   string
	values [4]float64 // of drawnColumns
}

// drawnColumns are what is known of drawn programs, in order.
var drawnColumns = [4]string{"time_a_s", "time_b_s", "energy_a_kwh", "energy_b_kwh"}

// gpuType is a type of the formula.
type gpuType struct{ speed, idle, dynamic float64 } // 1, watts, watts

var gpuTypes = [2]gpuType{{1, 55, 260}, {0.62, 25, 235}}

// trainer is a family of training scripts.
type trainer struct {
	name    string
	imports string
	models  []string  // what builds the model, by size
	million []float64 // parameters
	sizes   []int     // of a side in pixels, or tokens
	image   bool
	loss    string
	tokens  func(size float64) float64
	effort  float64
}

const imageLoss = "nn.functional.cross_entropy(model(x), y.cuda())"

func square(by, times float64) func(float64) float64 {
	return func(size float64) float64 { return size / by * (size / by) * times }
}

func linearly(times float64) func(float64) float64 {
	return func(size float64) float64 { return size * times }
}

// formatted are lines made from what differs between a family's models.
func formatted(format string, of ...string) []string {
	out := make([]string, 0, len(of))
	for _, what := range of {
		out = append(out, strings.ReplaceAll(format, "?", what))
	}
	return out
}

var trainers = []trainer{
	{
		"resnet", "import torchvision.models as models\n",
		formatted("model = models.resnet?(weights=None)\n", "18", "34", "50", "101", "152"),
		[]float64{11.7, 21.8, 25.6, 44.5, 60.2},
		[]int{160, 224, 288},
		true, imageLoss, square(224, 110), 1,
	},
	{
		"vgg", "import torchvision.models as models\n",
		formatted("model = models.vgg?(weights=None)\n", "11", "16", "19"),
		[]float64{132.9, 138.4, 143.7},
		[]int{160, 224},
		true, imageLoss, square(224, 90), 1.1,
	},
	{
		"vit", "import timm\n",
		formatted("model = timm.create_model('vit_?_patch16_224', img_size=IMAGE_SIZE)\n", "small",
			"base", "large"),
		[]float64{22.1, 86.6, 304.3},
		[]int{192, 224, 256},
		true, imageLoss, square(16, 1), 1.15,
	},
	{
		"bert", "import transformers\n",
		formatted("config = transformers.BertConfig(?)\nmodel = transformers.BertForMaskedLM(config)\n",
			"num_hidden_layers=6, hidden_size=768", "num_hidden_layers=12, hidden_size=768",
			"num_hidden_layers=24, hidden_size=1024"),
		[]float64{66, 110, 340},
		[]int{128, 256, 512},
		false, "model(x, labels=y.cuda()).loss", linearly(1), 1.1,
	},
	{
		"gpt", "import transformers\n",
		formatted("config = transformers.GPT2Config(?, n_positions=SEQ_LEN)\n"+
			"model = transformers.GPT2LMHeadModel(config)\n", "n_layer=12, n_embd=768",
			"n_layer=24, n_embd=1024", "n_layer=36, n_embd=1280"),
		[]float64{124, 355, 774},
		[]int{256, 512, 1024},
		false, "model(x, labels=y.cuda()).loss", linearly(1.1), 1.2,
	},
	{
		"gan", "",
		formatted("def block(i, o):\n    return nn.Sequential(nn.ConvTranspose2d(i, o, 4, 2, 1), "+
			"nn.BatchNorm2d(o), nn.ReLU(True))\n\nWIDTH = ?\n"+
			"generator = nn.Sequential(block(100, WIDTH * 8), block(WIDTH * 8, WIDTH * 4), block(WIDTH * "+
			"4, WIDTH * 2), nn.ConvTranspose2d(WIDTH * 2, 3, 4, 2, 1), nn.Tanh())\n"+
			"discriminator = nn.Sequential(nn.Conv2d(3, WIDTH, 4, 2, 1), nn.LeakyReLU(0.2), "+
			"nn.Conv2d(WIDTH, WIDTH * 2, 4, 2, 1), nn.Flatten(), nn.LazyLinear(1))\n"+
			"model = nn.ModuleList([generator, discriminator])\n", "128", "192"),
		[]float64{12.7, 30.5},
		[]int{32, 64, 128},
		true, "-discriminator(generator(torch.randn(len(x), 100, 4, 4).cuda())).mean() + " +
			"discriminator(x).mean()", square(64, 160), 0.8,
	},
	{
		"lstm", "",
		formatted("class Lstm(nn.Module):\n    def __init__(self, hidden=?):\n        super().__init__()\n"+
			"        self.emb = nn.Embedding(30000, hidden)\n"+
			"        self.rnn = nn.LSTM(hidden, hidden, layers, batch_first=True)\n"+
			"        self.out = nn.Linear(hidden, 30000)\n\n    def forward(self, x):\n"+
			"        y, _ = self.rnn(self.emb(x))\n        return self.out(y)\n\nmodel = Lstm()\n",
			"1024, layers=2", "1500, layers=2"),
		[]float64{24.2, 66},
		[]int{35, 70, 140},
		false, "nn.functional.cross_entropy(model(x).transpose(1, 2), y.cuda())", linearly(1.6), 0.5,
	},
	{
		"diffusion", "from diffusers import UNet2DModel, DDPMScheduler\n",
		formatted("model = UNet2DModel(sample_size=IMAGE_SIZE, block_out_channels=(?))\nnoise = "+
			"DDPMScheduler(num_train_timesteps=1000)\n", "128, 256, 256", "224, 448, 448", "320, 640, 640"),
		[]float64{35.7, 113.7, 295},
		[]int{32, 64},
		true, "nn.functional.mse_loss(model(x, torch.randint(0, 1000, (len(x),)).cuda()).sample, " +
			"torch.randn_like(x))", square(32, 220), 1.1,
	},
}

func oneOf[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// drawProgram returns the i-th of some: every fifth is a CUDA benchmark, every fifth a
// batch script of a solver.
func drawProgram(r *rand.Rand, i int) drawnProgram {
	switch i % 5 {
	case 3:
		return drawKernel(r)
	case 4:
		return drawSolver(r)
	}
	return drawTraining(r)
}

// took returns the values of a program, with the formula's noise.
func took(r *rand.Rand, gpus, utilisation float64, seconds func(speed float64) float64) [4]float64 {
	var out [4]float64
	shared, energy := 0.06*r.NormFloat64(), 0.04*r.NormFloat64()
	for k, g := range gpuTypes {
		t := seconds(g.speed)
		out[k] = t * math.Exp(shared+0.02*r.NormFloat64())
		out[2+k] = gpus * (g.idle + g.dynamic*utilisation) * t / 3.6e6 *
			math.Exp(shared+energy+0.02*r.NormFloat64())
	}
	return out
}

func drawTraining(r *rand.Rand) drawnProgram {
	f := &trainers[r.IntN(len(trainers))]
	model := r.IntN(len(f.models))
	batch, epochs, samples := oneOf(r, 8, 16, 32, 64, 128, 256), 1+r.IntN(30), oneOf(r, 5000, 10000, 20000,
		50000, 60000, 100000)
	gpus, size, amp := oneOf(r, 1, 1, 1, 2, 4), oneOf(r, f.sizes...), r.IntN(3) == 0
	saturation := float64(batch) / float64(batch+12)
	rate := 38e12 * saturation * math.Pow(float64(gpus), 0.92)
	if amp {
		rate *= 1.7
	}
	flops := 6 * f.million[model] * 1e6 * f.tokens(float64(size)) * f.effort
	steps := math.Ceil(float64(samples) / float64(batch) / float64(gpus))
	return drawnProgram{
		trainingText(r, f, model, batch, epochs, samples, gpus, size, amp),
		took(r, float64(gpus), 0.35+0.6*saturation, func(speed float64) float64 {
			return 18 + float64(epochs)*(2.5+float64(samples)*flops/(rate*speed)+0.004*steps)
		}),
	}
}

// trainingText returns a training script in one of three styles of configuration.
func trainingText(r *rand.Rand, f *trainer, model, batch, epochs, samples, gpus, size int, amp bool) string {
	var b strings.Builder
	if about := oneOf(r, "", "", "# nightly experiment, %s\n", "# train %s from scratch\n",
		"# ablation of %s\n", "# training run for the %s baseline\n"); about != "" {
		fmt.Fprintf(&b, about, f.name)
	}
	b.WriteString("import torch\nimport torch.nn as nn\n" +
		"from torch.utils.data import DataLoader, Dataset\n" + f.imports)
	lr, batchName, epochsName := oneOf(r, "1e-02", "1e-03", "1e-04"), "batch_size", "epochs"
	const names = "batch_size, epochs, LR = %[1]sbatch_size%[2]s, %[1]sepochs%[2]s, %[1]slr%[2]s\n" +
		"NUM_SAMPLES, NUM_GPUS = %[1]snum_samples%[2]s, %[1]sgpus%[2]s\n"
	switch r.IntN(3) {
	case 0:
		batchName, epochsName = "BATCH_SIZE", "EPOCHS"
		fmt.Fprintf(&b, "\nBATCH_SIZE = %d\nEPOCHS = %d\nLR = %s\nNUM_SAMPLES = %d\nNUM_GPUS = %d\n", batch,
			epochs, lr, samples, gpus)
	case 1:
		fmt.Fprintf(&b, "\ncfg = dict(batch_size=%d, epochs=%d, lr=%s, num_samples=%d, gpus=%d)\n", batch,
			epochs, lr, samples, gpus)
		fmt.Fprintf(&b, names, "cfg['", "']")
	default:
		const option = "ap.add_argument('--%s', type=%s, default=%v)\n"
		b.WriteString("import argparse\n\nap = argparse.ArgumentParser()\n")
		fmt.Fprintf(&b, option+option+option+option+option, "batch-size", "int", batch, "epochs", "int",
			epochs, "lr", "float", lr, "num-samples", "int", samples, "gpus", "int", gpus)
		b.WriteString("args = ap.parse_args()\n")
		fmt.Fprintf(&b, names, "args.", "")
	}
	sizeName, item := "SEQ_LEN", "        x = torch.randint(0, 30000, (SEQ_LEN,))\n"+
		"        return x, x.clone()\n"
	if f.image {
		sizeName, item = "IMAGE_SIZE",
			"        return torch.randn(3, IMAGE_SIZE, IMAGE_SIZE), torch.randint(0, 1000, (1,)).item()\n"
	}
	truth := map[bool]string{false: "False", true: "True"}[amp]
	fmt.Fprintf(&b, "%s = %d\nUSE_AMP = %s\n\n\nclass RandomData(Dataset):\n    def __len__(self):\n"+
		"        return NUM_SAMPLES\n\n    def __getitem__(self, i):\n%s\n", sizeName, size, truth, item)
	fmt.Fprintf(&b, "# model with about %.1f million parameters\n%smodel = model.cuda()\n", f.million[model],
		f.models[model])
	if gpus > 1 {
		b.WriteString("model = nn.DataParallel(model, device_ids=list(range(NUM_GPUS)))\n")
	}
	fmt.Fprintf(&b, "opt = torch.optim.%s(model.parameters(), lr=LR)\n"+
		"scaler = torch.cuda.amp.GradScaler(enabled=USE_AMP)\n", oneOf(r, "Adam", "AdamW", "SGD"))
	fmt.Fprintf(&b, "loader = DataLoader(RandomData(), batch_size=%s, shuffle=True, num_workers=%d)\n\n"+
		"for epoch in range(%s):\n    for x, y in loader:\n", batchName, 2+r.IntN(7), epochsName)
	fmt.Fprintf(&b, "        x = x.cuda(non_blocking=True)\n        opt.zero_grad(set_to_none=True)\n"+
		"        with torch.autocast('cuda', enabled=USE_AMP):\n            loss = %s\n"+
		"        scaler.scale(loss).backward()\n        scaler.step(opt)\n        scaler.update()\n"+
		"    print(epoch, loss.item())\n", f.loss)
	if r.IntN(2) == 0 {
		fmt.Fprintf(&b, "torch.save(model.state_dict(), '%s.pt')\n", f.name)
	}
	return b.String()
}

// kernels are the CUDA benchmarks' names, bodies, how their work grows with a side,
// what of it a second does on type a, and how busy they keep a GPU.
var kernels = []struct {
	name, body string
	power      float64
	work, busy float64
}{
	{
		"stencil", "const float *a, float *b, int n) {\n  int i = blockIdx.y * blockDim.y + threadIdx.y;\n" +
			"  int j = blockIdx.x * blockDim.x + threadIdx.x;\n" +
			"  if (i > 0 && j > 0 && i < n - 1 && j < n - 1)\n" +
			"    b[i * n + j] = 0.2f * (a[i * n + j] + a[(i - 1) * n + j] + a[(i + 1) * n + j] + a[i * n + " +
			"j - 1] + a[i * n + j + 1]);\n", 2, 72e-12, 0.62,
	},
	{
		"matmul",
		"const float *a, const float *b, float *c, int n) {\n" +
			"  int i = blockIdx.y * blockDim.y + threadIdx.y;\n" +
			"  int j = blockIdx.x * blockDim.x + threadIdx.x;\n  float s = 0;\n  for (int k = 0; k < n; " +
			"k++)\n    s += a[i * n + k] * b[k * n + j];\n  c[i * n + j] = s;\n", 3, 2 / 96e12, 0.93,
	},
	{
		"nbody", "const float4 *p, float4 *f, int n) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n" +
			"  float4 s = make_float4(0, 0, 0, 0);\n  for (int k = 0; k < n; k++) {\n" +
			"    float dx = p[k].x - p[i].x, dy = p[k].y - p[i].y, dz = p[k].z - p[i].z;\n" +
			"    float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-6f);\n    s.x += dx * r * r * r;\n  }\n" +
			"  f[i] = s;\n", 2, 20 / 9e12, 0.88,
	},
	{
		"reduction", "const float *a, float *out, int n) {\n  extern __shared__ float cache[];\n" +
			"  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  cache[threadIdx.x] = i < n ? a[i] : 0;\n" +
			"  __syncthreads();\n  for (int s = blockDim.x / 2; s > 0; s >>= 1)\n" +
			"    if (threadIdx.x < s) cache[threadIdx.x] += cache[threadIdx.x + s];\n" +
			"  if (threadIdx.x == 0) atomicAdd(out, cache[0]);\n", 2, 4 / 1.2e12, 0.45,
	},
}

func drawKernel(r *rand.Rand) drawnProgram {
	k := &kernels[r.IntN(len(kernels))]
	n, iterations := oneOf(r, 512, 1024, 2048, 4096, 8192), oneOf(r, 500, 1000, 2000, 5000, 10000, 20000)
	text := fmt.Sprintf("// %[1]s kernel benchmark\n#include <cstdio>\n#include <cuda_runtime.h>\n\n"+
		"#define N %[2]d\n#define ITERATIONS %[3]d\n#define BLOCK %[4]d\n\n__global__ void %[1]s(%[5]s}\n\n"+
		"int main() {\n  float *a, *b, *c;\n  size_t bytes = (size_t)N * N * sizeof(float);\n"+
		"  cudaMalloc(&a, bytes);\n  cudaMalloc(&b, bytes);\n  cudaMalloc(&c, bytes);\n"+
		"  dim3 block(BLOCK, BLOCK), grid(N / BLOCK, N / BLOCK);\n"+
		"  for (int it = 0; it < ITERATIONS; it++)\n    %[1]s<<<grid, block>>>(a, b, c, N);\n"+
		"  cudaDeviceSynchronize();\n  printf(\"done %%d\\n\", ITERATIONS);\n  return 0;\n}\n",
		k.name, n, iterations, oneOf(r, 16, 32), k.body)
	return drawnProgram{text, took(r, 1, k.busy, func(speed float64) float64 {
		return 4 + 40*math.Pow(float64(n), k.power)*float64(iterations)*k.work/speed
	})}
}

// solvers are the MPI solvers' names, work and how busy they keep a GPU.
var solvers = []struct {
	name       string
	work, busy float64
}{{"cfd", 60, 0.66}, {"lattice", 140, 0.85}, {"cg", 30, 0.5}, {"fft", 45, 0.58}}

func drawSolver(r *rand.Rand) drawnProgram {
	s := &solvers[r.IntN(len(solvers))]
	n, steps, ranks := oneOf(r, 192, 256, 384, 512), oneOf(r, 500, 1000, 2000, 5000, 10000, 20000),
		oneOf(r, 4, 8, 16, 32)
	gpus := oneOf(r, 2, 4, 8)
	nodes := max(1, gpus/4)
	output := oneOf(r, "", "#SBATCH --output=%x.%j.out\n")
	text := fmt.Sprintf("#!/bin/bash\n#SBATCH --job-name=%[1]s_%[2]d\n#SBATCH --nodes=%[3]d\n"+
		"#SBATCH --ntasks=%[4]d\n#SBATCH --gres=gpu:%[5]d\n#SBATCH --time=%02[6]d:00:00\n%[7]s\n"+
		"module load %[8]s openmpi cuda\nexport OMP_NUM_THREADS=%[9]d\n\n"+
		"# domain %[2]dx%[2]dx%[2]d, %[10]d time steps on %[11]d GPUs\ncat > input.%[1]s <<EOF\n"+
		"solver = %[1]s\nnx = %[2]d\nny = %[2]d\nnz = %[2]d\nsteps = %[10]d\nranks = %[4]d\ngpus = %[11]d\n"+
		"output_every = %[12]d\nEOF\n\nsrun -n %[4]d ./%[1]s_solver --input input.%[1]s --grid %[2]d --steps %[10]d\n",
		s.name, n, nodes, ranks, gpus/nodes, 1+r.IntN(24), output, oneOf(r, "gcc/12", "nvhpc", "intel"),
		oneOf(r, 1, 4, 8), steps, gpus, steps/10)
	return drawnProgram{text, took(r, float64(gpus), s.busy, func(speed float64) float64 {
		w := math.Pow(float64(n), 3) * float64(steps) * s.work / 6e12 / float64(gpus) * 4 *
			(1 + 0.05*math.Log2(float64(ranks)))
		return 12 + 40*w/speed
	})}
}

// drawn are so many programs with their embeddings, and what they take by column.
func drawn(r *rand.Rand, many int) (embeddings [][]float64, values [4][]float64) {
	for i := range many {
		p := drawProgram(r, i)
		embeddings = append(embeddings, source.Embed(source.Read(p.text)))
		for k, v := range p.values {
			values[k] = append(values[k], v)
		}
	}
	order := r.Perm(many)
	shuffled := slices.Clone(embeddings)
	for to, from := range order {
		shuffled[to] = embeddings[from]
	}
	for k := range values {
		was := slices.Clone(values[k])
		for to, from := range order {
			values[k][to] = was[from]
		}
	}
	return shuffled, values
}
