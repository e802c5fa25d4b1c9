// Breadth-first search with a worklist that threads append to by atomics.

#include "example.cuh"

__global__ void expand(const unsigned *offsets, const unsigned *targets, unsigned *queue, unsigned *tail,
                       unsigned *distances, unsigned first, unsigned end)
{
    const unsigned item = first + blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= end) {
        return;
    }
    const unsigned vertex = queue[item];
    const unsigned distance = distances[vertex] + 1;
    for (unsigned edge = offsets[vertex]; edge < offsets[vertex + 1]; ++edge) {
        const unsigned neighbour = targets[edge];
        if (atomicCAS(&distances[neighbour], ~0u, distance) == ~0u) {
            queue[atomicAdd(tail, 1)] = neighbour;
        }
    }
}

int main(int argc, char **argv)
{
    const unsigned vertices = 200000;
    std::vector<unsigned> offsets{0}, targets;
    unsigned state = 7;
    for (unsigned vertex = 0; vertex < vertices; ++vertex) {
        const unsigned degree = vertex % 500 == 3 ? 300 : 2 + vertex % 5;
        for (unsigned i = 0; i < degree; ++i) {
            targets.push_back(next_random(state) % vertices);
        }
        offsets.push_back(targets.size());
    }
    unsigned *device_offsets = upload(offsets), *device_targets = upload(targets);
    unsigned *queue = upload(std::vector<unsigned>(vertices)), *tail = upload(std::vector<unsigned>(1));
    unsigned *distances = upload(std::vector<unsigned>(vertices));
    // The thread that finds a vertex first differs between runs; the distance of the vertex does not.
    say_time(median_ms(runs(argc, argv), [&] {
        check(cudaMemset(distances, 0xff, vertices * sizeof(unsigned)), "cudaMemset");
        check(cudaMemset(distances, 0, sizeof(unsigned)), "cudaMemset");
        check(cudaMemset(queue, 0, sizeof(unsigned)), "cudaMemset");
        const unsigned one = 1;
        check(cudaMemcpy(tail, &one, sizeof one, cudaMemcpyHostToDevice), "copy to the device");
        for (unsigned first = 0, end = 1; first < end;) {
            expand<<<(end - first + 127) / 128, 128>>>(device_offsets, device_targets, queue, tail, distances, first,
                                                        end);
            first = end;
            end = download(tail, 1)[0];
        }
    }));
    std::printf("bfs %016llx\n", digest(download(distances, vertices)));
    return 0;
}
