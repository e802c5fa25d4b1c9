//! Vectors of four.

/// Four numbers that one 16-byte access reads or writes.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Float4 {
    /// First; along x.
    pub x: f32,
    /// Second; along y.
    pub y: f32,
    /// Third; along z.
    pub z: f32,
    /// Fourth. The mass of a body; 0 in velocities and accelerations.
    pub w: f32,
}
