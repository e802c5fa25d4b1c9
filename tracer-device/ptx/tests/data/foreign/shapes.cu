// Compiler output other than loops and branches: parameters of all sizes, calls of all kinds, loops that
// cannot be reduced, tables of functions.
struct Big {
    char tag;
    double factors[3];
    int count;
};
template <typename T, int N> struct Vector {
    T items[N];
};

template <typename T, int N> __global__ void scale(Vector<T, N> a, T *out, char c, short s) {
    int i = threadIdx.x;
    if (i < N) out[i] = a.items[i] * c + s;
}
template __global__ void scale<float, 5>(Vector<float, 5>, float *, char, short);
template __global__ void scale<double, 3>(Vector<double, 3>, double *, char, short);

__global__ void __launch_bounds__(256, 2) big(Big big, float *out) {
    out[threadIdx.x] = big.tag ? big.factors[threadIdx.x % 3] : big.count;
}

typedef float (*Operation)(float);
__device__ float twice(float x) { return x > 1 ? 2 * x : x; }
__device__ float third(float x) { return x / 3; }
__device__ Operation operations[2] = {twice, third};

__global__ void through_table(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        for (int k = 0; k < n; k++) x[i] = operations[(i + k) & 1](x[i]);
}

__global__ void through_register(float *x, int n) {
    Operation operation = n & 1 ? twice : third;
    for (int k = threadIdx.x; k < n; k += blockDim.x) x[k] = operation(x[k]);
}

struct Shape {
    __device__ virtual int area() const { return 0; }
};
struct Square : Shape {
    int side;
    __device__ Square(int side) : side(side) {}
    __device__ int area() const override {
        int area = 0;
        for (int k = 0; k < side; k++) area += side;
        return area;
    }
};

__global__ void through_object(int *x) {
    Square square(x[0]);
    Shape *shape = &square;
    if (x[1]) x[2] = shape->area();
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__global__ void recursive(int *x) { x[threadIdx.x] = fibonacci(x[threadIdx.x]); }

__global__ void lock(int *taken, int *value) {
    for (int k = 0; k < 32; k++)
        if (k == (threadIdx.x & 31)) {
            while (atomicCAS(taken, 0, 1)) __nanosleep(20);
            *value += k;
            __threadfence();
            atomicExch(taken, 0);
        }
}

__global__ void irreducible(int *x, int n) {
    int i = threadIdx.x, sum = x[i];
    if (sum & 1) goto second;
first:
    sum += n;
    x[i] ^= sum;
    if (sum > 1 << 20) goto end;
second:
    sum = sum * 3 + x[sum & 15];
    if (sum & 4) goto first;
    if (sum & 8) goto second;
end:
    x[i] = sum;
}

__global__ void checks(int *x) {
    if (x[threadIdx.x] < 0) __trap();
    if (x[threadIdx.x] == 7) asm("exit;");
    x[threadIdx.x]++;
}

extern __shared__ float dynamic[];
__global__ void shared(float *x, int n) {
    dynamic[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < n; k++) sum += dynamic[(threadIdx.x + k) % n];
    x[threadIdx.x] = sum;
}

__global__ void fallthrough(int *x, int n) {
    for (int k = 0; k < n; k++) switch (x[k]) {
            case 0: x[1]++; break;
            case 1: x[2] += x[3]; break;
            case 2: __syncthreads();
            case 3: x[5]--; break;
            case 4: atomicAdd(x, 3); break;
            case 5: return;
            case 6: x[7] = atomicMax(x + 2, 9); break;
            case 7: x[x[3]] = 2;
            default: x[9]++;
        }
}

__global__ void empty() {}
__global__ void forever(volatile int *x) {
    for (;;) *x = 1;
}
__global__ void spin(volatile int *x) {
    while (*x) {}
    x[1] = 1;
}
