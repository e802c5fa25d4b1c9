//! Tracing sessions: allocate the pool, launch, drain, write.
