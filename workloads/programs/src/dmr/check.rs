//! Is a mesh refined, and nothing but refined?

use std::fmt;

use super::{DmrOptions, Refined};
use crate::check::mesh::{self as checker, Parameters, Report};
use crate::inputs::Mesh;
use crate::inputs::geometry::AngleBound;
use crate::words::count;

/// Sharp angles that stay, as a result declares them: triangles by reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kept {
    /// [`Refined::kept_corner`].
    pub corner: usize,
    /// [`Refined::kept_short`].
    pub short: usize,
    /// [`Refined::kept_unsure`].
    pub unsure: usize,
}

impl Kept {
    fn of(refined: &Refined) -> Self {
        let Refined { kept_corner, kept_short, kept_unsure, .. } = *refined;
        Self { corner: kept_corner, short: kept_short, unsure: kept_unsure }
    }

    /// All of them.
    pub fn total(&self) -> usize {
        // A wrong result may declare anything.
        self.corner.saturating_add(self.short).saturating_add(self.unsure)
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { corner, short, unsure } = self;
        write!(f, "left alone: {corner} in corners, {short} under the floor, {unsure} for rounding")
    }
}

/// What [`check()`] found of a mesh that is well refined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Triangles of the mesh.
    pub triangles: usize,
    /// Of those, the ones with a sharp angle.
    pub kept: Kept,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { triangles, kept } = self;
        let triangles = count(*triangles as u64);
        if f.alternate() {
            write!(f, "conforming, Delaunay, no bad triangle among {triangles}; {kept}")
        } else {
            let kept = count(kept.total() as u64);
            write!(f, "conforming and Delaunay: {triangles} triangles, {kept} sharp ones that have to stay")
        }
    }
}

/// Why a mesh is not well refined.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The options' angle is none that a triangle could be held to.
    #[error("the angle is none: {degrees} degrees, and it must be from 0 to 60")]
    Angle {
        /// The angle.
        degrees: f64,
    },
    /// Work is left, or the mesh has problems other than the sharp angles that the result declares, or those
    /// are not the ones that it has.
    #[error(fmt = write_unsound)]
    Unsound {
        /// [`Refined::left_bad`].
        left_bad: usize,
        /// What the result declares.
        kept: Kept,
        /// What the checker of meshes found.
        report: Box<Report>,
    },
}

fn write_unsound(left_bad: &usize, kept: &Kept, report: &Report, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let first = report.problems.first().map(ToString::to_string).unwrap_or_default();
    let problems = report.problem_count;
    if f.alternate() {
        write!(f, "{left_bad} left to do; {problems} problems ({first}); {kept}")
    } else {
        write!(f, "{left_bad} triangles left to do, {problems} problems: {first}")
    }
}

/// Checks a refined mesh with [`check::mesh::check`](checker::check()), under the options' angle.
///
/// Some sharp angles stay, and the result says how many and why: the only problems may be these, and those in
/// corners must be the ones between two segments.
///
/// # Errors
/// If the mesh has any other problem, or triangles are left to refine.
pub fn check(mesh: &Mesh, options: &DmrOptions, refined: &Refined) -> Result<Finding, CheckError> {
    let degrees = options.angle_degrees;
    let bound = AngleBound::from_degrees(degrees).ok_or(CheckError::Angle { degrees })?;
    let parameters = Parameters { bound, ..Parameters::default() };
    let report = checker::check(refined.view(), mesh, &parameters);
    let kept = Kept::of(refined);
    let sound = report.problem_count == report.bad_triangles - report.bad_between_segments
        && report.bad_triangles == kept.total()
        && report.bad_between_segments == kept.corner
        && refined.left_bad == 0;
    if !sound {
        return Err(CheckError::Unsound { left_bad: refined.left_bad, kept, report: Box::new(report) });
    }
    Ok(Finding { triangles: report.triangles, kept })
}

#[cfg(all(test, feature = "evaluation"))]
mod tests {
    use super::*;
    use crate::dmr::reference;
    use crate::inputs::generate;

    fn unsound(mesh: &Mesh, refined: &Refined) -> (String, String) {
        let error = check(mesh, &DmrOptions::default(), refined).unwrap_err();
        (error.to_string(), format!("{error:#}"))
    }

    /// A triangle around a fourth point, with angles of 10 degrees at its first corner and 21 at its second,
    /// which the input demands.
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
            assert_eq!(finding.kept, Kept { corner: kept, short: 0, unsure: 0 });
            let triangles = count(refined.triangles.len() as u64);
            let words = format!("{triangles} triangles, {kept} sharp ones that have to stay");
            assert_eq!(finding.to_string(), format!("conforming and Delaunay: {words}"));
            let details = format!("left alone: {kept} in corners, 0 under the floor, 0 for rounding");
            assert_eq!(
                format!("{finding:#}"),
                format!("conforming, Delaunay, no bad triangle among {triangles}; {details}")
            );
        }

        // Refined for 30 degrees is not refined for 33.
        let sharper = DmrOptions { angle_degrees: 33.0, ..options.clone() };
        assert!(matches!(check(&mesh, &sharper, &right), Err(CheckError::Unsound { .. })));
        let no_angle = DmrOptions { angle_degrees: f64::NAN, ..options };
        assert!(matches!(check(&mesh, &no_angle, &right), Err(CheckError::Angle { .. })));
    }

    #[test]
    fn what_a_result_says_of_itself_must_be_so() {
        let mesh = generate::mesh_r1m_like(60, 1).unwrap();
        let right = reference(&mesh, &DmrOptions::default()).unwrap();
        let kept = Kept::of(&right);

        let left = Refined { left_bad: 2, ..right.clone() };
        let (words, details) = unsound(&mesh, &left);
        assert_eq!(words, "2 triangles left to do, 0 problems: ");
        assert_eq!(details, format!("2 left to do; 0 problems (); {kept}"));
        for wrong in [
            Refined { kept_corner: kept.corner + 1, ..right.clone() },
            Refined { kept_short: kept.short + 1, ..right.clone() },
            Refined { kept_unsure: usize::MAX, ..right.clone() },
        ] {
            assert!(unsound(&mesh, &wrong).0.starts_with("0 triangles left to do, 0 problems"));
        }
        let mut broken = right;
        broken.triangles[0][1] = u32::MAX;
        let (words, details) = unsound(&mesh, &broken);
        assert!(
            words.starts_with("0 triangles left to do, 1 problems: triangle 0 has the points"),
            "{words}"
        );
        assert!(details.starts_with("0 left to do; 1 problems (triangle 0 has the points"), "{details}");
    }
}
