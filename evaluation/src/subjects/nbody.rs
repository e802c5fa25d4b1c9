//! N-body.

use std::borrow::Cow;

use warptrace_decoder::lanes::LaneDigest;
use warptrace_host::Launcher;
use warptrace_workloads::ProgramInfo;
use warptrace_workloads::nbody::{self, Bodies, Float4, NbodyOptions};

use super::SEED;
use crate::subject::{Case, LaneReference, Run, RunResult, Subject};

pub(super) const NAME: &str = "nbody";

/// Steps, as the sizes of the thesis's traces imply.
const STEPS: u32 = 2;

pub(super) fn cases(quick: bool) -> Vec<Case> {
    if quick {
        return vec![case(500), case(800)];
    }
    vec![case(50_000).like("N-body, 50,000 bodies"), case(60_000).like("N-body, 60,000 bodies")]
}

pub(super) fn twin(quick: bool) -> Case {
    case(if quick { 300 } else { 3_000 })
}

fn case(bodies: u32) -> Case {
    let input = format!("{} bodies, {STEPS} steps", crate::table::count(bodies.into()));
    Case::new(NAME, input, move || {
        Ok(Nbody { bodies: nbody::plummer(bodies as usize, SEED), options: NbodyOptions::new(STEPS) })
    })
}

struct Nbody {
    bodies: Bodies,
    options: NbodyOptions,
}

impl Nbody {
    fn count(&self) -> u32 {
        self.bodies.positions.len() as u32
    }
}

impl Subject for Nbody {
    fn program(&self) -> &'static ProgramInfo {
        &nbody::PROGRAM
    }

    fn run(&self, launcher: &mut dyn Launcher) -> anyhow::Result<Run<'_>> {
        let outcome = nbody::run(launcher, &self.bodies, &self.options)?;
        let result = Moved { subject: self, bodies: outcome.bodies, accelerations: outcome.accelerations };
        Ok(Run { kernel: outcome.kernel, launches: outcome.launches, result: Box::new(result) })
    }

    fn lanes(&self) -> Option<&dyn LaneReference> {
        Some(self)
    }
}

impl LaneReference for Nbody {
    fn lane(&self, launch: u32, thread: u64) -> LaneDigest {
        LaneDigest::of(if launch.is_multiple_of(2) {
            nbody::force_lane_locations(self.count(), launch / 2, thread)
        } else {
            nbody::integrate_lane_locations(self.count(), thread)
        })
    }
}

struct Moved<'s> {
    subject: &'s Nbody,
    bodies: Bodies,
    accelerations: Vec<Float4>,
}

impl RunResult for Moved<'_> {
    fn bytes(&self) -> Cow<'_, [u8]> {
        let parts = [&self.bodies.positions, &self.bodies.velocities, &self.accelerations];
        Cow::Owned(parts.iter().flat_map(|part| bytemuck::cast_slice::<Float4, u8>(part)).copied().collect())
    }

    fn check(&self) -> Result<String, String> {
        let Nbody { bodies, options } = self.subject;
        let deviation = nbody::deviation(bodies, options, &self.bodies, &self.accelerations);
        let words = format!(
            "from double precision: positions {:.1e}, velocities {:.1e}, accelerations {:.1e}",
            deviation.position, deviation.velocity, deviation.acceleration
        );
        if deviation.is_small() { Ok(words) } else { Err(words) }
    }

    fn expected_events(&self) -> Option<u64> {
        Some(nbody::expected_events(self.subject.count(), STEPS, self.subject.options.block))
    }
}
