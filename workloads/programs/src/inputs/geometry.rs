//! Plane geometry of the meshes: exact predicates and the test for a bad triangle.
//!
//! Orientation and in-circle tests are Shewchuk's adaptive predicates ("Adaptive Precision Floating-Point
//! Arithmetic and Fast Robust Geometric Predicates", 1997). The sign of the result is exact for coordinates
//! that satisfy [`coordinate_is_usable`].

use robust::Coord;

/// A point (x, y).
pub type Point = [f64; 2];

/// Largest magnitude of a coordinate: products of four differences must not overflow.
pub const MAX_COORDINATE: f64 = f64::from_bits((1023 + 201) << 52);
/// Smallest magnitude of a coordinate other than 0: the error terms of the predicates must not underflow.
pub const MIN_COORDINATE: f64 = f64::from_bits((1023 - 142) << 52);

/// Returns true if the predicates are exact for this coordinate: 0, or a magnitude from 2^-142 to 2^201.
pub fn coordinate_is_usable(x: f64) -> bool {
    x == 0.0 || (MIN_COORDINATE..=MAX_COORDINATE).contains(&x.abs())
}

/// Returns twice the signed area of the triangle, positive if counter-clockwise. Only the sign is exact.
pub fn orientation(a: Point, b: Point, c: Point) -> f64 {
    robust::orient2d(coord(a), coord(b), coord(c))
}

/// Returns a positive value if `d` lies inside the circle through the counter-clockwise triangle `a`, `b`,
/// `c`. The sign is exact; the value is about twice the triangle's signed area times (r^2 - |d - centre|^2).
pub fn in_circle(a: Point, b: Point, c: Point, d: Point) -> f64 {
    robust::incircle(coord(a), coord(b), coord(c), coord(d))
}

fn coord([x, y]: Point) -> Coord<f64> {
    Coord { x, y }
}

/// Returns the radius of the circle through three points; infinite if they lie on a line.
pub fn circumradius(a: Point, b: Point, c: Point) -> f64 {
    let doubled_area = orientation(a, b, c).abs();
    (distance(a, b) / doubled_area) * distance(b, c) * distance(c, a) / 2.0
}

/// Returns the Euclidean distance between two points.
pub fn distance(a: Point, b: Point) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

/// Returns the smallest angle of a triangle in degrees, for display. Decisions use [`AngleBound::is_bad`].
pub fn smallest_angle_degrees(corners: [Point; 3]) -> f64 {
    (0..3)
        .map(|i| {
            let [u, v] = legs(corners, i);
            (u[0] * v[1] - u[1] * v[0]).abs().atan2(dot(u, v)).to_degrees()
        })
        .fold(180.0, f64::min)
}

/// Returns the vectors from corner `i` to the next corner and to the one after it.
fn legs(corners: [Point; 3], i: usize) -> [Point; 2] {
    let [from, next, last] = [corners[i], corners[(i + 1) % 3], corners[(i + 2) % 3]];
    [[next[0] - from[0], next[1] - from[1]], [last[0] - from[0], last[1] - from[1]]]
}

fn dot(u: Point, v: Point) -> f64 {
    u[0] * v[0] + u[1] * v[1]
}

/// Smallest allowed angle in a refined mesh. With `u` and `v` from a corner to the two others, the angle is
/// too small if `u.v > 0` and `(u.v)^2 > cos^2 * (u.u) * (v.v)`. The order of operations is fixed, so a
/// kernel with the same ones, without fused multiply-add, gives the same bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AngleBound {
    cos_squared: f64,
    degrees: f64,
}

impl AngleBound {
    /// 30 degrees, the bound of the thesis's refinement: cos^2 is exactly 0.75.
    pub const THIRTY_DEGREES: Self = Self { cos_squared: 0.75, degrees: 30.0 };

    /// Creates a bound; `None` unless `degrees` is from 0 to 60 (no triangle has all angles over 60).
    pub fn from_degrees(degrees: f64) -> Option<Self> {
        if degrees == 30.0 {
            return Some(Self::THIRTY_DEGREES);
        }
        let cos = degrees.to_radians().cos();
        (0.0..=60.0).contains(&degrees).then_some(Self { cos_squared: cos * cos, degrees })
    }

    /// The bound in degrees.
    pub fn degrees(&self) -> f64 {
        self.degrees
    }

    /// The square of the bound's cosine, for the kernels.
    pub fn cos_squared(&self) -> f64 {
        self.cos_squared
    }

    /// Returns true if the angle at corner `i` is under the bound. Panics if `i` is over 2.
    pub fn is_sharp(&self, corners: [Point; 3], i: usize) -> bool {
        let [u, v] = legs(corners, i);
        let product = dot(u, v);
        product > 0.0 && product * product > self.cos_squared * (dot(u, u) * dot(v, v))
    }

    /// Returns true if any angle of the triangle is under the bound.
    pub fn is_bad(&self, corners: [Point; 3]) -> bool {
        (0..3).any(|i| self.is_sharp(corners, i))
    }
}
