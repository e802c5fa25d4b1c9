//! Results of mesh refinement.

use std::time::Duration;

use warptrace_kernels::dmr::{ALIVE, BAD, NO_LINK, SKIP_CORNER, SKIP_SHORT, SKIP_UNSURE, unpack};

use crate::inputs::geometry::Point;
use crate::inputs::{Mesh, MeshError, MeshView};

/// A refined mesh, not yet checked. The input's points come first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Refined {
    /// Coordinates.
    pub points: Vec<Point>,
    /// Corners, counter-clockwise.
    pub triangles: Vec<[u32; 3]>,
    /// Ends of the input's segments or their pieces.
    pub segments: Vec<[u32; 2]>,
    /// Triangles that stay because all their sharp angles lie between segments.
    pub kept_corner: usize,
    /// Triangles with a sharp angle that stay because of the floor.
    pub kept_short: usize,
    /// Triangles with a sharp angle that stay because of rounding.
    pub kept_unsure: usize,
    /// Triangles left to refine; 0 after success.
    pub left_bad: usize,
}

impl Refined {
    /// Returns the parts of the mesh for [`check`](crate::check::mesh::check()).
    pub fn view(&self) -> MeshView<'_> {
        MeshView { points: &self.points, triangles: &self.triangles, segments: &self.segments }
    }

    /// Converts to a [`Mesh`]. Fails if the parts do not form one.
    pub fn into_mesh(self) -> Result<Mesh, MeshError> {
        Mesh::new(self.points, self.triangles, self.segments)
    }

    /// Collects the live triangles from the kernels' records.
    pub(super) fn from_records(points: Vec<Point>, triangles: &[u128], links: &[u128]) -> Self {
        let mut refined = Self { points, ..Self::default() };
        for (slot, (&triangle, &links)) in triangles.iter().zip(links).enumerate() {
            let [a, b, c, flags] = unpack(triangle);
            if flags & ALIVE == 0 {
                continue;
            }
            let corners = [a, b, c];
            refined.triangles.push(corners);
            refined.kept_corner += usize::from(flags & SKIP_CORNER != 0);
            refined.kept_short += usize::from(flags & SKIP_SHORT != 0);
            refined.kept_unsure += usize::from(flags & SKIP_UNSURE != 0);
            refined.left_bad += usize::from(flags & BAD != 0);
            for edge in 0..3 {
                // A segment inside the domain is in two records; the lower slot adds it.
                let link = unpack(links)[edge];
                let first = link == NO_LINK || (link >> 2) as usize > slot;
                if flags >> edge & 1 != 0 && first {
                    refined.segments.push([corners[edge], corners[(edge + 1) % 3]]);
                }
            }
        }
        refined
    }
}

/// Counts of one round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundReport {
    /// Worklist entries before the round.
    pub waiting: u32,
    /// Items of the round.
    pub items: u32,
    /// Points inserted.
    pub winners: u32,
    /// Points inserted by items that won the second claim.
    pub second_claim: u32,
    /// Inserted points that split a segment.
    pub splits: u32,
    /// Items whose triangle another item had replaced.
    pub dropped: u32,
    /// Items whose triangle stays for good.
    pub skipped: u32,
    /// Items whose cavity was too large for the round's scratch.
    pub too_large: u32,
}

/// The result of [`run`](super::run()).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DmrOutcome {
    /// The refined mesh.
    pub refined: Refined,
    /// Counts of each round.
    pub rounds: Vec<RoundReport>,
    /// Number of kernel launches, including those before the first round.
    pub launches: u32,
    /// Total kernel time.
    pub kernel: Duration,
    /// Name, launches and time of each kernel, in the order of a round.
    pub kernels: Vec<(&'static str, u32, Duration)>,
    /// Number of reallocations of device arrays.
    pub reallocations: u32,
}
