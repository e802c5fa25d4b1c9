//! Executes calls and returns.

use super::super::error::Fault;
use super::super::machine::{Frame, Position, Warp};
use super::super::op::{Callee, FUNCTIONS};
use super::{Executor, Lane, frame};

const MAX_CALLS: usize = 64;

impl Executor<'_> {
    pub(super) fn call(
        &self,
        warp: &mut Warp,
        lane: Lane,
        function: &Callee,
        results: &[usize],
        arguments: &[usize],
        back: usize,
    ) -> Result<Position, Fault> {
        let (name, callee) = match function {
            Callee::Named(name) => (name.clone(), self.program.function(name)),
            Callee::At(address) => {
                let address = self.value(warp, lane, *address)?;
                let index = address.checked_sub(FUNCTIONS).and_then(|index| usize::try_from(index).ok());
                let index = index.filter(|index| *index < self.program.functions.len());
                (format!("the function at {address:#x}"), index)
            }
        };
        let unknown = |problem: &str| Fault::Unknown(format!("`{name}` {problem}"));
        let Some(callee) = callee else {
            return match &*name {
                // Output of `vprintf` is ignored.
                "vprintf" | "free" => {
                    let depth = warp.lanes[lane.number as usize].len();
                    let caller = frame(warp, lane)?;
                    results
                        .iter()
                        .try_for_each(|at| caller.parameters.write(*at as u64, &[0; 4]))
                        .ok_or(Fault::End)?;
                    Ok(Position { depth, function: caller.function, item: back })
                }
                "__assertfail" => Err(Fault::Trap),
                _ => Err(unknown("is not defined")),
            };
        };
        let code = &self.program.functions[callee];
        if code.parameters.len() != arguments.len() || code.results.len() != results.len() {
            return Err(unknown("takes another number of arguments, or has other results"));
        }
        let mut called = Frame::new(self.program, callee);
        (called.back, called.results) = (back, results.to_vec());
        let caller = frame(warp, lane)?;
        called.local_start = (caller.local_start + caller.local.len() as u64).next_multiple_of(16);
        for ((offset, bytes), argument) in code.parameters.iter().zip(arguments) {
            let copied = called.parameters.copy(*offset, &caller.parameters, *argument, *bytes);
            copied.ok_or_else(|| unknown("takes longer arguments"))?;
        }
        let frames = &mut warp.lanes[lane.number as usize];
        if frames.len() >= MAX_CALLS {
            return Err(Fault::Calls { limit: MAX_CALLS });
        }
        frames.push(called);
        Ok(Position { depth: frames.len(), function: callee, item: 0 })
    }

    /// Returns from a call; `None` if the kernel itself ends.
    pub(super) fn leave(&self, warp: &mut Warp, lane: Lane) -> Result<Option<Position>, Fault> {
        let frames = warp.lanes.get_mut(lane.number as usize).ok_or(Fault::End)?;
        let ended = frames.pop().ok_or(Fault::End)?;
        let depth = frames.len();
        let Some(caller) = frames.last_mut() else { return Ok(None) };
        for ((offset, bytes), result) in
            self.program.functions[ended.function].results.iter().zip(&ended.results)
        {
            let copied = caller.parameters.copy(*result, &ended.parameters, *offset, *bytes);
            copied.ok_or_else(|| Fault::Unknown("a result that is longer than its variable".to_owned()))?;
        }
        Ok(Some(Position { depth, function: caller.function, item: ended.back }))
    }
}
