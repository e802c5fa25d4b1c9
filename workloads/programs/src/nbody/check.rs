//! Check of the bodies.

use super::{Bodies, Deviation, Float4, NbodyOptions, deviation};
use crate::check::Checked;

/// Checks the moved bodies with [`deviation`] and the tolerance of [`Deviation::is_small`]. Fails also if a
/// number of bodies differs. Panics if there are more `options.sources` than bodies.
pub fn check(bodies: &Bodies, options: &NbodyOptions, moved: &Bodies, accelerations: &[Float4]) -> Checked {
    let count = bodies.positions.len();
    for (what, found) in [
        ("positions", moved.positions.len()),
        ("velocities", moved.velocities.len()),
        ("accelerations", accelerations.len()),
    ] {
        if found != count {
            return Err(format!("{found} {what} for {count} bodies"));
        }
    }
    let deviation = deviation(bodies, options, moved, accelerations);
    if Deviation::is_small(&deviation) { Ok(deviation.to_string()) } else { Err(deviation.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nbody::{plummer, reference};

    #[test]
    fn bodies_are_judged() {
        let (bodies, options) = (plummer(50, 1), NbodyOptions::new(2));
        let (mut moved, mut accelerations) = reference(&bodies, &options);
        let finding = check(&bodies, &options, &moved, &accelerations).unwrap();
        assert!(finding.starts_with("from double precision: positions "), "{finding}");

        accelerations[7].y += 10.0;
        let error = check(&bodies, &options, &moved, &accelerations).unwrap_err();
        let off = deviation(&bodies, &options, &moved, &accelerations);
        assert!(off.acceleration > 0.1 && off.position < 1e-4);
        assert_eq!(error, off.to_string());
        moved.velocities.pop();
        let error = check(&bodies, &options, &moved, &accelerations).unwrap_err();
        assert_eq!(error, "49 velocities for 50 bodies");
    }
}
