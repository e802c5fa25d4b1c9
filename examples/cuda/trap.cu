// A kernel that traps: the program receives the same error with and without tracing.

#include "example.cuh"

__global__ void checked(const int *values, unsigned count)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count && values[index] < 0) {
        __trap();
    }
}

int main()
{
    std::vector<int> values(10000, 1);
    int *device_values = upload(values);
    checked<<<40, 256>>>(device_values, 10000);
    std::printf("without a negative value: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    values[7777] = -1;
    check(cudaMemcpy(device_values, values.data(), values.size() * sizeof(int), cudaMemcpyHostToDevice),
          "copy to the device");
    checked<<<40, 256>>>(device_values, 10000);
    std::printf("with one: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    return 0;
}
