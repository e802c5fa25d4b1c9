//! The traced kernels.
