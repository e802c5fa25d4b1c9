// Product of a sparse matrix and a vector, one row per thread: rows of very different lengths make lanes wait.

#include "example.cuh"

__global__ void spmv(const unsigned *offsets, const unsigned *columns, const float *values, const float *x, float *y,
                     unsigned rows)
{
    const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) {
        return;
    }
    float sum = 0;
    for (unsigned at = offsets[row]; at < offsets[row + 1]; ++at) {
        sum += values[at] * x[columns[at]];
    }
    y[row] = sum;
}

int main(int argc, char **argv)
{
    const unsigned rows = 200000;
    std::vector<unsigned> offsets{0}, columns;
    std::vector<float> values, x(rows, 1.5f);
    unsigned state = 1;
    for (unsigned row = 0; row < rows; ++row) {
        const unsigned length = row % 97 == 0 ? 200 : 1 + next_random(state) % 12;
        for (unsigned i = 0; i < length; ++i) {
            columns.push_back(next_random(state) % rows);
            values.push_back(float(next_random(state) % 16));
        }
        offsets.push_back(columns.size());
    }
    unsigned *device_offsets = upload(offsets), *device_columns = upload(columns);
    float *device_values = upload(values), *device_x = upload(x), *device_y = upload(std::vector<float>(rows));
    say_time(median_ms(runs(argc, argv), [&] {
        spmv<<<(rows + 127) / 128, 128>>>(device_offsets, device_columns, device_values, device_x, device_y, rows);
    }));
    std::printf("spmv %016llx\n", digest(download(device_y, rows)));
    return 0;
}
