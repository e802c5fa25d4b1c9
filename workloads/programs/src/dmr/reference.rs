//! Refinement on the CPU: one bad triangle at a time, in FIFO order, with exact predicates.

use std::collections::VecDeque;

use warptrace_kernels::dmr::geometry::{circumcentre, encroaches, split_point};
use warptrace_kernels::dmr::{NO_LINK, next, previous};

use super::outcome::Refined;
use super::prepare::{acute_points, links, segment_bits};
use super::{DmrError, DmrOptions};
use crate::inputs::Mesh;
use crate::inputs::geometry::{AngleBound, Point, distance, in_circle, orientation};

/// State of a triangle: good, to be refined (`Bad`), or sharp but kept for one of three reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Good,
    Bad,
    Corner,
    Short,
    Unsure,
}

#[derive(Clone, Copy)]
struct Triangle {
    corners: [u32; 3],
    links: [u32; 3],
    segments: u32,
    class: Class,
    /// Whether the slot is in the queue. A triangle that reuses a slot of a cavity inherits the flag.
    queued: bool,
}

/// An edge of the frontier: its start, the link across, and whether it is a segment.
struct Edge {
    node: u32,
    link: u32,
    is_segment: bool,
}

enum Growth {
    Cavity(Vec<u32>, Vec<Edge>),
    /// The circumcentre encroaches upon this segment: `triangle << 2 | edge`.
    Encroached(u32),
    Unsure,
}

struct Refinement {
    points: Vec<Point>,
    triangles: Vec<Triangle>,
    acute: Vec<u32>,
    bound: AngleBound,
    floor: f64,
    queue: VecDeque<u32>,
}

/// Refines `mesh` by the same rules as the kernels. Ignores `grid`, `max_rounds` and `cavity_bound`. Fails if
/// an option is out of range or the mesh needs too many triangles for 32-bit links.
pub fn reference(mesh: &Mesh, options: &DmrOptions) -> Result<Refined, DmrError> {
    let bound = options.check()?;
    let bits = segment_bits(mesh);
    let parts = mesh.triangles().iter().zip(links(mesh)).zip(bits);
    let triangles = parts
        .map(|((&corners, links), segments)| Triangle {
            corners,
            links,
            segments,
            class: Class::Good,
            queued: false,
        })
        .collect();
    let mut refinement = Refinement {
        points: mesh.points().to_vec(),
        triangles,
        acute: acute_points(mesh),
        bound,
        floor: options.floor_squared(mesh).sqrt(),
        queue: VecDeque::new(),
    };
    for slot in 0..refinement.triangles.len() as u32 {
        refinement.classify(slot);
    }
    while let Some(slot) = refinement.queue.pop_front() {
        refinement.triangles[slot as usize].queued = false;
        refinement.refine(slot)?;
    }
    Ok(refinement.finish())
}

impl Refinement {
    fn at(&self, node: u32) -> Point {
        self.points[node as usize]
    }

    fn corners(&self, slot: u32) -> [Point; 3] {
        self.triangles[slot as usize].corners.map(|node| self.at(node))
    }

    fn classify(&mut self, slot: u32) {
        let at = self.corners(slot);
        let segments = self.triangles[slot as usize].segments;
        let is_segment = |edge: usize| segments >> edge & 1 != 0;
        let sharp: Vec<usize> = (0..3).filter(|&i| self.bound.is_sharp(at, i)).collect();
        let shortest = (0..3).map(|i| distance(at[i], at[(i + 1) % 3])).fold(f64::INFINITY, f64::min);
        self.triangles[slot as usize].class = if sharp.is_empty() {
            Class::Good
        } else if sharp.iter().all(|&i| is_segment(i) && is_segment((i + 2) % 3)) {
            Class::Corner
        } else if shortest < self.floor {
            Class::Short
        } else {
            Class::Bad
        };
        self.enqueue(slot);
    }

    fn enqueue(&mut self, slot: u32) {
        let triangle = &mut self.triangles[slot as usize];
        if triangle.class == Class::Bad && !triangle.queued {
            triangle.queued = true;
            self.queue.push_back(slot);
        }
    }

    fn refine(&mut self, slot: u32) -> Result<(), DmrError> {
        if self.triangles[slot as usize].class != Class::Bad {
            return Ok(());
        }
        let [a, b, c] = self.corners(slot);
        let mut p = circumcentre(a, b, c);
        let mut ends = [NO_LINK; 2];
        let mut growth = self.grow(slot << 2, false, p);
        if let Growth::Encroached(edge) = growth {
            let corners = self.triangles[(edge >> 2) as usize].corners;
            ends = [corners[(edge & 3) as usize], corners[next(edge & 3) as usize]];
            let [from, to] = ends.map(|node| self.at(node));
            if distance(from, to) < 2.0 * self.floor {
                self.triangles[slot as usize].class = Class::Short;
                return Ok(());
            }
            let is_acute = |node: u32| {
                self.acute.get(node as usize / 32).is_some_and(|word| word >> (node % 32) & 1 != 0)
            };
            p = split_point(from, to, is_acute(ends[0]), is_acute(ends[1]));
            growth = self.grow(edge, true, p);
        }
        match growth {
            Growth::Cavity(cavity, frontier) => self.commit(&cavity, &frontier, p, ends)?,
            _ => self.triangles[slot as usize].class = Class::Unsure,
        }
        // A split elsewhere may have left the triangle unchanged.
        self.enqueue(slot);
        Ok(())
    }

    /// Grows a cavity like the kernel's `grow`, which documents the algorithm.
    fn grow(&self, root: u32, splitting: bool, p: Point) -> Growth {
        let mut cavity = vec![root >> 2];
        let mut frontier = Vec::new();
        let mut waiting = Vec::new();
        let around = |edge: u32| [edge & !3 | previous(edge & 3), edge & !3 | next(edge & 3)];
        if splitting {
            let twin = self.triangles[(root >> 2) as usize].links[(root & 3) as usize];
            if twin != NO_LINK {
                cavity.push(twin >> 2);
                waiting.extend(around(twin));
            }
            waiting.extend(around(root));
        } else {
            waiting.extend([root | 2, root | 1, root]);
        }
        while let Some(edge) = waiting.pop() {
            let triangle = &self.triangles[(edge >> 2) as usize];
            let node = triangle.corners[(edge & 3) as usize];
            let [a, b] = [node, triangle.corners[next(edge & 3) as usize]].map(|node| self.at(node));
            let visible = orientation(a, b, p) > 0.0;
            let is_segment = triangle.segments >> (edge & 3) & 1 != 0;
            let link = triangle.links[(edge & 3) as usize];
            if is_segment {
                if !splitting && (!visible || encroaches(a, b, p)) {
                    return Growth::Encroached(edge);
                }
                if !visible {
                    return Growth::Unsure;
                }
            } else {
                let [x, y, z] = self.corners(link >> 2);
                if !visible || in_circle(x, y, z, p) > 0.0 {
                    if cavity.contains(&(link >> 2)) {
                        return Growth::Unsure;
                    }
                    cavity.push(link >> 2);
                    waiting.extend(around(link));
                    continue;
                }
            }
            frontier.push(Edge { node, link, is_segment });
        }
        Growth::Cavity(cavity, frontier)
    }

    fn commit(
        &mut self,
        cavity: &[u32],
        frontier: &[Edge],
        p: Point,
        ends: [u32; 2],
    ) -> Result<(), DmrError> {
        let point = self.points.len() as u32;
        self.points.push(p);
        let open = ends[0] != NO_LINK && frontier.len() == cavity.len() + 1;
        let first_new = self.triangles.len() as u32;
        let new = frontier.len() - cavity.len();
        let found = u64::from(first_new) + new as u64;
        let limit = u64::from(warptrace_kernels::dmr::MAX_TRIANGLES);
        if found > limit {
            return Err(DmrError::TooLarge { what: "triangles", found, limit });
        }
        let slots: Vec<u32> = cavity.iter().copied().chain(first_new..first_new + new as u32).collect();
        let count = frontier.len();
        for (i, edge) in frontier.iter().enumerate() {
            let after = (i + 1) % count;
            let before = (i + count - 1) % count;
            let end = if open && after == 0 { ends[0] } else { frontier[after].node };
            let segments = u32::from(edge.is_segment)
                | u32::from(ends.contains(&end)) << 1
                | u32::from(ends.contains(&edge.node)) << 2;
            let onward = if open && after == 0 { NO_LINK } else { slots[after] << 2 | 2 };
            let back = if open && i == 0 { NO_LINK } else { slots[before] << 2 | 1 };
            let triangle = Triangle {
                corners: [edge.node, end, point],
                links: [edge.link, onward, back],
                segments,
                class: Class::Good,
                queued: self.triangles.get(slots[i] as usize).is_some_and(|old| old.queued),
            };
            match self.triangles.get_mut(slots[i] as usize) {
                Some(slot) => *slot = triangle,
                None => self.triangles.push(triangle),
            }
            if edge.link != NO_LINK {
                self.triangles[(edge.link >> 2) as usize].links[(edge.link & 3) as usize] = slots[i] << 2;
            }
        }
        slots.iter().for_each(|&slot| self.classify(slot));
        Ok(())
    }

    fn finish(self) -> Refined {
        let count = |class| self.triangles.iter().filter(|triangle| triangle.class == class).count();
        let mut segments = Vec::new();
        for (slot, triangle) in self.triangles.iter().enumerate() {
            for edge in (0..3).filter(|edge| triangle.segments >> edge & 1 != 0) {
                let link = triangle.links[edge];
                if link == NO_LINK || (link >> 2) as usize > slot {
                    segments.push([triangle.corners[edge], triangle.corners[(edge + 1) % 3]]);
                }
            }
        }
        Refined {
            kept_corner: count(Class::Corner),
            kept_short: count(Class::Short),
            kept_unsure: count(Class::Unsure),
            left_bad: count(Class::Bad),
            triangles: self.triangles.iter().map(|triangle| triangle.corners).collect(),
            segments,
            points: self.points,
        }
    }
}
