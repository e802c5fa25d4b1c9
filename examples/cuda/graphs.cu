// CUDA graphs: one captured from a stream, and one built from nodes whose arguments change, each
// launched several times.

#include "example.cuh"

__global__ void add(unsigned *values, unsigned count, unsigned amount)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count && values[index] % 4 != 3) {
        values[index] += amount;
    }
}

int main(int argc, char **argv)
{
    unsigned count = 100000;
    std::vector<unsigned> values(count);
    for (unsigned index = 0; index < count; ++index) {
        values[index] = index;
    }
    unsigned *device_values = upload(values);
    cudaStream_t stream;
    check(cudaStreamCreate(&stream), "cudaStreamCreate");

    cudaGraph_t captured;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
    add<<<(count + 255) / 256, 256, 0, stream>>>(device_values, count, 1);
    add<<<(count + 255) / 256, 256, 0, stream>>>(device_values, count, 2);
    check(cudaStreamEndCapture(stream, &captured), "cudaStreamEndCapture");

    cudaGraph_t built;
    check(cudaGraphCreate(&built, 0), "cudaGraphCreate");
    unsigned amount = 5;
    void *arguments[] = {&device_values, &count, &amount};
    cudaKernelNodeParams node{};
    node.func = reinterpret_cast<void *>(add);
    node.gridDim = dim3((count + 255) / 256);
    node.blockDim = dim3(256);
    node.kernelParams = arguments;
    cudaGraphNode_t added;
    check(cudaGraphAddKernelNode(&added, built, nullptr, 0, &node), "cudaGraphAddKernelNode");

    cudaGraphExec_t of_captured, of_built;
    check(cudaGraphInstantiate(&of_captured, captured, 0), "cudaGraphInstantiate");
    check(cudaGraphInstantiate(&of_built, built, 0), "cudaGraphInstantiate");
    // The instantiated graph does not need the graph.
    check(cudaGraphDestroy(captured), "cudaGraphDestroy");
    for (int launch = 0; launch < 3; ++launch) {
        check(cudaGraphLaunch(of_captured, stream), "cudaGraphLaunch");
        check(cudaGraphLaunch(of_built, stream), "cudaGraphLaunch");
        // A launch without a graph, between graph launches.
        add<<<(count + 255) / 256, 256, 0, stream>>>(device_values, count, 7);
        // The next launch of the graph has different arguments.
        amount += 4;
        check(cudaGraphExecKernelNodeSetParams(of_built, added, &node), "cudaGraphExecKernelNodeSetParams");
    }
    check(cudaGraphExecDestroy(of_captured), "cudaGraphExecDestroy");
    check(cudaGraphExecDestroy(of_built), "cudaGraphExecDestroy");
    check(cudaGraphDestroy(built), "cudaGraphDestroy");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    std::printf("graphs %016llx\n", digest(download(device_values, count)));
    return 0;
}
