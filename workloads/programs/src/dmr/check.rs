//! Check of a refined mesh.

use super::{DmrOptions, Refined};
use crate::check::Checked;
use crate::check::mesh::{self as checker, Parameters};
use crate::inputs::Mesh;
use crate::inputs::geometry::AngleBound;
use crate::words::count;

/// Checks a refined mesh with [`check::mesh::check`](checker::check()) and the options' angle.
///
/// Triangles with sharp angles that had to stay are allowed; the message states their number. The check must
/// find no other bad triangles than those that `refined` counts, and those counted as corners must lie
/// between two segments.
///
/// # Errors
/// If the mesh has any other violation, triangles are left to refine, or the angle is out of range.
pub fn check(mesh: &Mesh, options: &DmrOptions, refined: &Refined) -> Checked {
    let degrees = options.angle_degrees;
    let bound = AngleBound::from_degrees(degrees);
    let bound =
        bound.ok_or_else(|| format!("the angle is none: {degrees} degrees, and it must be from 0 to 60"))?;
    let report = checker::check(refined.view(), mesh, &Parameters { bound, ..Parameters::default() });
    let &Refined { left_bad, kept_corner, kept_short, kept_unsure, .. } = refined;
    // Saturating, because a wrong result may contain any counts.
    let kept = kept_corner.saturating_add(kept_short).saturating_add(kept_unsure);
    let sound = report.problem_count == report.bad_triangles - report.bad_between_segments
        && report.bad_triangles == kept
        && report.bad_between_segments == kept_corner
        && left_bad == 0;
    if !sound {
        let first = report.problems.first().map(ToString::to_string).unwrap_or_default();
        return Err(format!("{left_bad} triangles left to do, {} problems: {first}", report.problem_count));
    }
    let (triangles, kept) = (count(report.triangles as u64), count(kept as u64));
    Ok(format!("conforming and Delaunay: {triangles} triangles, {kept} sharp ones that have to stay"))
}

#[cfg(test)]
#[cfg(feature = "evaluation")]
mod tests {
    use super::*;
    use crate::dmr::reference;
    use crate::inputs::generate;

    fn unsound(mesh: &Mesh, refined: &Refined) -> String {
        check(mesh, &DmrOptions::default(), refined).unwrap_err()
    }

    /// A triangle around a fourth point, with input angles of 10 and 21 degrees at its first two corners.
    fn wedge() -> Mesh {
        let (sin, cos) = 10f64.to_radians().sin_cos();
        let points = vec![[0.0, 0.0], [10.0, 0.0], [7.0 * cos, 7.0 * sin], [6.0, 2.0 * sin]];
        Mesh::with_boundary(points, vec![[0, 1, 3], [1, 2, 3], [2, 0, 3]], Vec::new()).unwrap().0
    }

    #[test]
    fn meshes_are_judged() {
        let options = DmrOptions::default();
        let mesh = generate::mesh_r1m_like(60, 1).unwrap();
        let right = reference(&mesh, &options).unwrap();
        for (mesh, kept) in [(&mesh, 0), (&wedge(), 2)] {
            let refined = reference(mesh, &options).unwrap();
            let finding = check(mesh, &options, &refined).unwrap();
            assert_eq!((refined.kept_corner, refined.kept_short, refined.kept_unsure), (kept, 0, 0));
            let triangles = count(refined.triangles.len() as u64);
            let words = format!("{triangles} triangles, {kept} sharp ones that have to stay");
            assert_eq!(finding, format!("conforming and Delaunay: {words}"));
        }

        // Refinement for 30 degrees does not satisfy 33.
        let sharper = DmrOptions { angle_degrees: 33.0, ..options.clone() };
        assert!(check(&mesh, &sharper, &right).unwrap_err().starts_with("0 triangles left to do, "));
        let no_angle = DmrOptions { angle_degrees: f64::NAN, ..options };
        assert!(check(&mesh, &no_angle, &right).unwrap_err().starts_with("the angle is none: NaN degrees"));
    }

    #[test]
    fn what_a_result_says_of_itself_must_be_so() {
        let mesh = generate::mesh_r1m_like(60, 1).unwrap();
        let right = reference(&mesh, &DmrOptions::default()).unwrap();
        let left = Refined { left_bad: 2, ..right.clone() };
        assert_eq!(unsound(&mesh, &left), "2 triangles left to do, 0 problems: ");
        for wrong in [
            Refined { kept_corner: right.kept_corner + 1, ..right.clone() },
            Refined { kept_short: right.kept_short + 1, ..right.clone() },
            Refined { kept_unsure: usize::MAX, ..right.clone() },
        ] {
            assert!(unsound(&mesh, &wrong).starts_with("0 triangles left to do, 0 problems"));
        }
        let mut broken = right;
        broken.triangles[0][1] = u32::MAX;
        let words = unsound(&mesh, &broken);
        assert!(
            words.starts_with("0 triangles left to do, 1 problems: triangle 0 has the points"),
            "{words}"
        );
    }
}
