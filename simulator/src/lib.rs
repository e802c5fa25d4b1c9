//! Runs warptrace kernels on the CPU: a grid of blocks of warps, one coroutine per lane.
