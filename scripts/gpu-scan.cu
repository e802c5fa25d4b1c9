// Prefix sums of the kernels in a PTX file, compared with cudaMemcpy and iterated CUB in one run; results are checked word by word.
//
//     nvcc -O3 -std=c++17 -arch=native scripts/gpu-scan.cu -lcuda -o gpu-scan && ./gpu-scan KERNELS.ptx [LOG2_WORDS] [ROUNDS]
//
// KERNELS.ptx is `target/*/build/warptrace-workloads-*/out/kernels.ptx`. Prints a table: medians of milliseconds, and words
// per second relative to cudaMemcpy. The time includes setting memory to 0, for the scans and for CUB.
#include <cub/cub.cuh>
#include <cuda.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#define CHECK(call)                                                                                                     \
  do {                                                                                                                  \
    auto status = static_cast<int>(call);                                                                               \
    if (status) {                                                                                                       \
      std::fprintf(stderr, "%s:%d: error %d\n", __FILE__, __LINE__, status);                                            \
      std::exit(1);                                                                                                     \
    }                                                                                                                   \
  } while (0)

template <int T> struct Tuple { unsigned word[T]; };
template <int T> struct Add {
  __host__ __device__ Tuple<T> operator()(const Tuple<T> &a, const Tuple<T> &b) const {
    Tuple<T> sum;
    for (int at = 0; at < T; at++) sum.word[at] = a.word[at] + b.word[at];
    return sum;
  }
};

struct Global { CUdeviceptr address; unsigned long long length; };

__global__ void fill(unsigned *words, size_t count) {
  for (size_t at = blockIdx.x * size_t(blockDim.x) + threadIdx.x; at < count; at += size_t(gridDim.x) * blockDim.x)
    words[at] = (unsigned(at) + 1) * 0x9e3779b9u ^ unsigned(at >> 7);
}

__global__ void compare(const unsigned *a, const unsigned *b, size_t count, unsigned long long *different) {
  for (size_t at = blockIdx.x * size_t(blockDim.x) + threadIdx.x; at < count; at += size_t(gridDim.x) * blockDim.x)
    if (a[at] != b[at]) atomicAdd(different, 1ull);
}

static float timed(const std::function<void()> &work) {
  cudaEvent_t from, to;
  CHECK(cudaEventCreate(&from));
  CHECK(cudaEventCreate(&to));
  CHECK(cudaEventRecord(from));
  work();
  CHECK(cudaEventRecord(to));
  CHECK(cudaEventSynchronize(to));
  float time;
  CHECK(cudaEventElapsedTime(&time, from, to));
  CHECK(cudaEventDestroy(from));
  CHECK(cudaEventDestroy(to));
  return time;
}

static double median(std::vector<float> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

static unsigned *input, *output, *expected;
static unsigned long long *states, *different;
static unsigned *ticket;
static void *scratch;
static size_t scratch_bytes;

// For single words, CUB's own sum of numbers, for which it is tuned.
static cudaError_t cub_pass(void *scratch, size_t &bytes, Tuple<1> *from, Tuple<1> *to, long long count) {
  return cub::DeviceScan::InclusiveSum(scratch, bytes, &from->word[0], &to->word[0], count);
}
template <int T> static cudaError_t cub_pass(void *scratch, size_t &bytes, Tuple<T> *from, Tuple<T> *to, long long count) {
  return cub::DeviceScan::InclusiveScan(scratch, bytes, from, to, Add<T>(), count);
}

template <int T> static void cub_scan(int order, size_t words) {
  auto count = static_cast<long long>(words / T);
  auto *from = reinterpret_cast<Tuple<T> *>(input);
  auto *to = reinterpret_cast<Tuple<T> *>(expected);
  for (int pass = 0; pass < order; pass++) {
    size_t needed = 0;
    CHECK(cub_pass(nullptr, needed, pass ? to : from, to, count));
    if (needed > scratch_bytes) {
      if (scratch) CHECK(cudaFree(scratch));
      CHECK(cudaMalloc(&scratch, needed));
      scratch_bytes = needed;
    }
    CHECK(cub_pass(scratch, needed, pass ? to : from, to, count));
  }
}

int main(int arguments, char **argument) {
  if (arguments < 2) return std::fprintf(stderr, "usage: gpu-scan KERNELS.ptx [LOG2_WORDS] [ROUNDS]\n"), 2;
  const size_t all = size_t(1) << (arguments > 2 ? std::atoi(argument[2]) : 28);
  const int rounds = arguments > 3 ? std::atoi(argument[3]) : 21;
  std::ifstream file(argument[1]);
  std::string ptx{std::istreambuf_iterator<char>(file), {}};
  CHECK(cudaFree(nullptr));
  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0));
  CUmodule module;
  CHECK(cuModuleLoadData(&module, ptx.c_str()));
  const size_t most_states = 2 * 16 * (all / 3072 + 1);
  CHECK(cudaMalloc(&input, all * 4));
  CHECK(cudaMalloc(&output, all * 4));
  CHECK(cudaMalloc(&expected, all * 4));
  CHECK(cudaMalloc(&states, most_states * 8));
  CHECK(cudaMalloc(&ticket, 4));
  CHECK(cudaMalloc(&different, 8));
  fill<<<1024, 256>>>(input, all);
  std::printf("%s, 2^%d words\n\n", device.name, arguments > 2 ? std::atoi(argument[2]) : 28);
  std::printf("| order | tuple | memcpy, ms | one pass, ms | iterated CUB, ms | one pass of memcpy | CUB of memcpy | blocks a multiprocessor | different words |\n");
  std::printf("| --: | --: | --: | --: | --: | --: | --: | --: | --: |\n");
  for (int order = 1; order <= 4; order++) {
    for (int tuple = 1; tuple <= 4; tuple++) {
      // Complete vectors of complete tuples.
      const size_t words = all / (4 * tuple) * (4 * tuple);
      CUfunction kernel;
      const std::string name = "scan_" + std::to_string(order) + "_" + std::to_string(tuple);
      CHECK(cuModuleGetFunction(&kernel, module, name.c_str()));
      int resident;
      CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, 256, 0));
      const size_t chunk = 256 * (tuple == 3 ? 12 : 16), chunks = (words + chunk - 1) / chunk;
      const size_t needed = 2 * order * tuple * chunks;
      const unsigned grid = unsigned(std::min<size_t>(chunks, size_t(resident) * device.multiProcessorCount));
      Global in{CUdeviceptr(input), words / 4}, out{CUdeviceptr(output), words / 4};
      Global state{CUdeviceptr(states), needed}, number{CUdeviceptr(ticket), 1};
      void *parameters[] = {&in, &out, &state, &number};
      auto copy = [&] { CHECK(cudaMemcpyAsync(output, input, words * 4, cudaMemcpyDeviceToDevice)); };
      auto one = [&] {
        CHECK(cudaMemsetAsync(states, 0, needed * 8));
        CHECK(cudaMemsetAsync(ticket, 0, 4));
        CHECK(cuLaunchKernel(kernel, grid, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
      };
      auto cub = [&] {
        if (tuple == 1) cub_scan<1>(order, words);
        if (tuple == 2) cub_scan<2>(order, words);
        if (tuple == 3) cub_scan<3>(order, words);
        if (tuple == 4) cub_scan<4>(order, words);
      };
      std::vector<float> times[3];
      unsigned long long wrong = 0, found = 0;
      for (int round = -2; round < rounds; round++) {
        const float copied = timed(copy), iterated = timed(cub);
        CHECK(cudaMemset(output, 0xff, words * 4));
        const float passed = timed(one);
        CHECK(cudaMemset(different, 0, 8));
        compare<<<1024, 256>>>(output, expected, words, different);
        CHECK(cudaMemcpy(&found, different, 8, cudaMemcpyDeviceToHost));
        wrong += found;
        if (round >= 0) times[0].push_back(copied), times[1].push_back(passed), times[2].push_back(iterated);
      }
      const double copied = median(times[0]), passed = median(times[1]), iterated = median(times[2]);
      std::printf("| %d | %d | %.3f | %.3f | %.3f | %.2f | %.2f | %d | %llu |\n", order, tuple, copied, passed, iterated,
                  copied / passed, copied / iterated, resident, wrong);
      std::fflush(stdout);
    }
  }
}
