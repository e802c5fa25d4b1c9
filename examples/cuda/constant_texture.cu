// Coefficients in constant memory and an image in a texture: accessed by name or handle, not by address.

#include "example.cuh"

__constant__ float weights[9];
__device__ unsigned bright_pixels;

__global__ void blur(cudaTextureObject_t picture, float *out, int width, int height)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= width || row >= height) {
        return;
    }
    float sum = 0;
    for (int at = 0; at < 9; ++at) {
        sum += weights[at] * tex2D<float>(picture, column + at % 3 - 1 + 0.5f, row + at / 3 - 1 + 0.5f);
    }
    out[row * width + column] = sum;
    if (sum > 600.0f) {
        atomicAdd(&bright_pixels, 1);
    }
}

int main(int argc, char **argv)
{
    const int width = 1000, height = 700;
    std::vector<float> pixels(width * height);
    unsigned state = 9;
    for (float &pixel : pixels) {
        pixel = float(next_random(state) % 1000);
    }
    cudaArray_t array;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    check(cudaMallocArray(&array, &format, width, height), "cudaMallocArray");
    check(cudaMemcpy2DToArray(array, 0, 0, pixels.data(), width * sizeof(float), width * sizeof(float), height,
                              cudaMemcpyHostToDevice),
          "copy to the array");
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc description{};
    description.addressMode[0] = description.addressMode[1] = cudaAddressModeClamp;
    description.filterMode = cudaFilterModePoint;
    cudaTextureObject_t texture;
    check(cudaCreateTextureObject(&texture, &resource, &description, nullptr), "cudaCreateTextureObject");
    const float kernel[9] = {1 / 16.f, 2 / 16.f, 1 / 16.f, 2 / 16.f, 4 / 16.f, 2 / 16.f, 1 / 16.f, 2 / 16.f, 1 / 16.f};
    check(cudaMemcpyToSymbol(weights, kernel, sizeof kernel), "cudaMemcpyToSymbol");
    float *out = upload(pixels);
    const unsigned zero = 0;
    say_time(median_ms(runs(argc, argv), [&] {
        check(cudaMemcpyToSymbol(bright_pixels, &zero, sizeof zero), "cudaMemcpyToSymbol");
        blur<<<dim3((width + 31) / 32, (height + 7) / 8), dim3(32, 8)>>>(texture, out, width, height);
    }));
    unsigned bright = 0;
    check(cudaMemcpyFromSymbol(&bright, bright_pixels, sizeof bright), "cudaMemcpyFromSymbol");
    std::printf("constant_texture %016llx, %u bright pixels\n", digest(download(out, pixels.size())), bright);
    return 0;
}
