//! Are the bodies where they should be?

use std::fmt;

use super::{Bodies, Deviation, Float4, NbodyOptions, deviation};

/// What [`check()`] found of bodies that are where they should be.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Finding {
    /// How far they are from the result in double precision.
    pub deviation: Deviation,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deviation.fmt(f)
    }
}

/// Why bodies are not where they should be.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// Something is missing, or is too much.
    #[error("{found} {what} for {bodies} bodies")]
    Length {
        /// Positions, velocities or accelerations.
        what: &'static str,
        /// How many were given.
        found: usize,
        /// Bodies before the run.
        bodies: usize,
    },
    /// They are too far from the result in double precision.
    #[error("{0}")]
    Deviation(Deviation),
}

/// Checks what became of `bodies` against the same steps in double precision: the result must be as near as
/// [`Deviation::is_small`] asks. Takes the time of [`deviation`].
///
/// # Errors
/// Another number of bodies, or a deviation that is not small.
///
/// # Panics
/// If more bodies attract than there are, which [`run`](super::run()) refuses.
pub fn check(
    bodies: &Bodies,
    options: &NbodyOptions,
    moved: &Bodies,
    accelerations: &[Float4],
) -> Result<Finding, CheckError> {
    let count = bodies.positions.len();
    for (what, found) in [
        ("positions", moved.positions.len()),
        ("velocities", moved.velocities.len()),
        ("accelerations", accelerations.len()),
    ] {
        if found != count {
            return Err(CheckError::Length { what, found, bodies: count });
        }
    }
    let deviation = deviation(bodies, options, moved, accelerations);
    if deviation.is_small() { Ok(Finding { deviation }) } else { Err(CheckError::Deviation(deviation)) }
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
        assert!(finding.to_string().starts_with("from double precision: positions "), "{finding}");
        // Nothing more is known for a table.
        assert_eq!(format!("{finding:#}"), finding.to_string());

        accelerations[7].y += 10.0;
        let error = check(&bodies, &options, &moved, &accelerations).unwrap_err();
        let CheckError::Deviation(off) = error else { panic!("{error}") };
        assert!(off.acceleration > 0.1 && off.position < 1e-4);
        assert_eq!(error.to_string(), off.to_string());
        moved.velocities.pop();
        let error = check(&bodies, &options, &moved, &accelerations).unwrap_err();
        assert_eq!(error.to_string(), "49 velocities for 50 bodies");
    }
}
