// Keeps one GPU busy for as many seconds as the argument says.
#include <stdlib.h>
#include <time.h>
#if defined(__HIPCC__) || defined(__HIP_PLATFORM_AMD__)
#include <hip/hip_runtime.h>
#define ALLOCATE hipMalloc
#define WAIT hipDeviceSynchronize
#define DONE hipSuccess
#else
#include <cuda_runtime.h>
#define ALLOCATE cudaMalloc
#define WAIT cudaDeviceSynchronize
#define DONE cudaSuccess
#endif

__global__ void work(float *out) {
	float a = threadIdx.x, b = 0.999f;
	for (int i = 0; i < 1 << 18; i++) a = a * b + 0.001f;
	out[blockIdx.x * blockDim.x + threadIdx.x] = a;
}

int main(int argc, char **argv) {
	float *out;
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 10);
	if (ALLOCATE((void **)&out, 1024 * 256 * sizeof(float)) != DONE) return 1;
	while (time(NULL) < end) {
		work<<<1024, 256>>>(out);
		if (WAIT() != DONE) return 1;
	}
	return 0;
}
