//! Plane geometry in f64. The order of operations is fixed, without fused multiply-add, so results are equal
//! on all devices to the bit.
//!
//! The predicates return true only if the result is certain: the determinant exceeds the bound on its
//! rounding error (Shewchuk 1997, the first filter of his adaptive predicates). Each use in the kernels takes
//! the side on which an uncertain result cannot break the mesh.

use super::layout::{BAD, SKIP_CORNER, SKIP_SHORT};

/// Rounding error of `orient2d` relative to the sum of its products: (3 + 16 e) e with e = 2^-53.
const ORIENTATION_ERROR: f64 = 3.330_669_073_875_471_6e-16;
/// Rounding error of `incircle` relative to its permanent: (10 + 96 e) e.
const IN_CIRCLE_ERROR: f64 = 1.110_223_024_625_157_7e-15;

/// Returns true if `a`, `b`, `p` certainly turn counter-clockwise: `p` is strictly to the left of the edge.
#[inline(always)]
pub fn is_left(a: [f64; 2], b: [f64; 2], p: [f64; 2]) -> bool {
    let left = (a[0] - p[0]) * (b[1] - p[1]);
    let right = (a[1] - p[1]) * (b[0] - p[0]);
    left - right > ORIENTATION_ERROR * (left.abs() + right.abs())
}

/// Returns true if `p` is certainly inside the circumcircle of the counter-clockwise triangle `a`, `b`, `c`.
#[inline(always)]
pub fn is_in_circle(a: [f64; 2], b: [f64; 2], c: [f64; 2], p: [f64; 2]) -> bool {
    let (ax, ay) = (a[0] - p[0], a[1] - p[1]);
    let (bx, by) = (b[0] - p[0], b[1] - p[1]);
    let (cx, cy) = (c[0] - p[0], c[1] - p[1]);
    let (bc, cb) = (bx * cy, cx * by);
    let (ca, ac) = (cx * ay, ax * cy);
    let (ab, ba) = (ax * by, bx * ay);
    let (a2, b2, c2) = (ax * ax + ay * ay, bx * bx + by * by, cx * cx + cy * cy);
    let determinant = a2 * (bc - cb) + b2 * (ca - ac) + c2 * (ab - ba);
    let permanent = a2 * (bc.abs() + cb.abs()) + b2 * (ca.abs() + ac.abs()) + c2 * (ab.abs() + ba.abs());
    determinant > IN_CIRCLE_ERROR * permanent
}

/// Returns the centre of the circle through three points. It is not finite if they are collinear.
#[inline(always)]
pub fn circumcentre(a: [f64; 2], b: [f64; 2], c: [f64; 2]) -> [f64; 2] {
    let (bx, by) = (b[0] - a[0], b[1] - a[1]);
    let (cx, cy) = (c[0] - a[0], c[1] - a[1]);
    let b2 = bx * bx + by * by;
    let c2 = cx * cx + cy * cy;
    let half = 0.5 / (bx * cy - by * cx);
    [a[0] + (cy * b2 - by * c2) * half, a[1] + (bx * c2 - cx * b2) * half]
}

/// Returns the square of the distance between two points.
#[inline(always)]
pub fn distance_squared(a: [f64; 2], b: [f64; 2]) -> f64 {
    let (x, y) = (b[0] - a[0], b[1] - a[1]);
    x * x + y * y
}

/// Returns true if `p` is inside the circle whose diameter is the segment.
#[inline(always)]
pub fn encroaches(a: [f64; 2], b: [f64; 2], p: [f64; 2]) -> bool {
    (a[0] - p[0]) * (b[0] - p[0]) + (a[1] - p[1]) * (b[1] - p[1]) < 0.0
}

/// Returns true if the angle at `corner` between `u` and `v` is below the bound: its cosine is positive, and
/// the cosine's square exceeds `cos_squared`. The checker on the host has the same operations in the same
/// order.
#[inline(always)]
fn is_sharp(corner: [f64; 2], u: [f64; 2], v: [f64; 2], cos_squared: f64) -> bool {
    let u = [u[0] - corner[0], u[1] - corner[1]];
    let v = [v[0] - corner[0], v[1] - corner[1]];
    let product = u[0] * v[0] + u[1] * v[1];
    let squares = (u[0] * u[0] + u[1] * u[1]) * (v[0] * v[0] + v[1] * v[1]);
    product > 0.0 && product * product > cos_squared * squares
}

/// Returns [`BAD`], the reason why a triangle with a sharp angle is left alone, or 0. Bit `e` of `segments`
/// is set if edge `e` is a segment.
#[inline(always)]
pub fn classify(corners: [[f64; 2]; 3], segments: u32, cos_squared: f64, floor_squared: f64) -> u32 {
    let [a, b, c] = corners;
    let sharp = is_sharp(a, b, c, cos_squared) as u32
        | (is_sharp(b, c, a, cos_squared) as u32) << 1
        | (is_sharp(c, a, b, cos_squared) as u32) << 2;
    // Corner i is between edges i and i - 1.
    let before = (segments << 1 | segments >> 2) & 0b111;
    let between_segments = segments & before;
    let shortest = distance_squared(a, b).min(distance_squared(b, c)).min(distance_squared(c, a));
    if sharp == 0 {
        0
    } else if sharp & !between_segments == 0 {
        SKIP_CORNER
    } else if shortest < floor_squared {
        SKIP_SHORT
    } else {
        BAD
    }
}

/// Returns the point at which a segment is split. If two segments meet at an acute angle at exactly one of
/// its ends, the distance from that end is a power of two (Ruppert's concentric shells). Splits of both
/// segments are then on the same circles around the corner, and do not encroach upon each other forever.
/// Otherwise the point is the middle.
#[inline(always)]
pub fn split_point(a: [f64; 2], b: [f64; 2], acute_a: bool, acute_b: bool) -> [f64; 2] {
    let squared = distance_squared(a, b);
    let inverse = inverse_sqrt(squared);
    // The largest power of two up to length / sqrt(2): 0.35 to 0.71 of the length.
    let radius = squared * inverse * core::f64::consts::FRAC_1_SQRT_2;
    let shell = f64::from_bits(radius.to_bits() & (0x7ff << 52));
    let at = shell * inverse;
    if acute_a == acute_b {
        [(a[0] + b[0]) * 0.5, (a[1] + b[1]) * 0.5]
    } else if acute_a {
        [a[0] + (b[0] - a[0]) * at, a[1] + (b[1] - a[1]) * at]
    } else {
        [b[0] + (a[0] - b[0]) * at, b[1] + (a[1] - b[1]) * at]
    }
}

/// Returns `1 / sqrt(x)`, accurate to a few units in the last place. Uses Newton's method with a first guess
/// from the bits. Only multiplies and subtracts, so results are equal on all devices.
#[inline(always)]
fn inverse_sqrt(x: f64) -> f64 {
    let mut y = f64::from_bits(0x5fe6_eb50_c7b5_37a9 - (x.to_bits() >> 1));
    let half = 0.5 * x;
    y *= 1.5 - half * y * y;
    y *= 1.5 - half * y * y;
    y *= 1.5 - half * y * y;
    y *= 1.5 - half * y * y;
    y * (1.5 - half * y * y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circumcentre_has_the_same_distance_to_all_corners() {
        let [a, b, c] = [[1.0, 2.0], [5.0, 3.0], [2.0, 7.5]];
        let centre = circumcentre(a, b, c);
        let r = distance_squared(a, centre);
        assert!((distance_squared(b, centre) - r).abs() < 1e-12 * r);
        assert!((distance_squared(c, centre) - r).abs() < 1e-12 * r);
        assert!(is_in_circle(a, b, c, centre));
        assert!(!is_in_circle(a, b, c, [5.0, 3.0]));
        assert!(!is_in_circle(a, b, c, [9.0, 9.0]));
    }

    #[test]
    fn a_point_on_the_line_is_not_certainly_left() {
        assert!(is_left([0.0, 0.0], [3.0, 1.0], [1.0, 1.0]));
        assert!(!is_left([0.0, 0.0], [3.0, 1.0], [1.0, 1.0 / 3.0]));
        assert!(!is_left([0.0, 0.0], [3.0, 1.0], [1.0, 0.0]));
        assert!(!is_left([0.0, 0.0], [3.0, 1.0], [f64::NAN, 0.0]));
    }

    #[test]
    fn inverse_square_root_is_accurate() {
        for x in [1.0, 2.0, 3.5e-20, 7.25e31, 1e-300] {
            assert!((inverse_sqrt(x) * f64::sqrt(x) - 1.0).abs() < 1e-14, "{x}");
        }
    }

    #[test]
    fn segments_with_one_acute_end_are_split_at_a_power_of_two() {
        let (a, b) = ([1.0, 1.0], [1.0, 11.0]);
        assert_eq!(split_point(a, b, false, false), [1.0, 6.0]);
        assert_eq!(split_point(a, b, true, true), [1.0, 6.0]);
        let near_a = split_point(a, b, true, false);
        assert!((near_a[1] - 5.0).abs() < 1e-12, "{near_a:?}");
        let near_b = split_point(a, b, false, true);
        assert!((near_b[1] - 7.0).abs() < 1e-12, "{near_b:?}");
    }

    #[test]
    fn triangles_are_told_apart() {
        let thin = [[0.0, 0.0], [10.0, 0.0], [9.0, 1.0]];
        assert_eq!(classify(thin, 0, 0.75, 0.0), BAD);
        // The sharp corner is corner 0, between edges 0 and 2.
        assert_eq!(classify(thin, 0b101, 0.75, 0.0), SKIP_CORNER);
        assert_eq!(classify(thin, 0b011, 0.75, 0.0), BAD);
        assert_eq!(classify(thin, 0, 0.75, 4.0), SKIP_SHORT);
        assert_eq!(classify([[0.0, 0.0], [1.0, 0.0], [0.5, 0.9]], 0, 0.75, 0.0), 0);
    }
}
