//! Measures the load by other processes, so that times are judged only on an idle machine.

use std::fs;

/// First reading of the processor clocks.
pub(crate) struct Load(Option<Reading>);

#[derive(Clone, Copy)]
struct Reading {
    /// Busy and idle time of all processors.
    all: u64,
    busy: u64,
    /// Time of terminated child processes of this process.
    own: u64,
}

impl Load {
    pub(crate) fn start() -> Self {
        Self(read())
    }

    /// Returns the share, from 0 to 1, of processor time since `start` that other processes used, if known.
    pub(crate) fn of_others(&self) -> Option<f64> {
        let (before, now) = (self.0?, read()?);
        let all = now.all.saturating_sub(before.all).max(1);
        let others = now.busy.saturating_sub(before.busy).saturating_sub(now.own.saturating_sub(before.own));
        #[expect(clippy::cast_precision_loss, reason = "a share needs few digits")]
        Some(others as f64 / all as f64)
    }
}

fn read() -> Option<Reading> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let all: Vec<u64> =
        stat.lines().next()?.split_whitespace().skip(1).map_while(|word| word.parse().ok()).collect();
    // Fields: user, nice, system, idle, iowait, irq, softirq, steal. Guest time is part of user time.
    let [user, nice, system, idle, wait, irq, soft, ..] = all[..] else { return None };
    let own = fs::read_to_string("/proc/self/stat").ok()?;
    // The program name may contain blanks. cutime and cstime are fields 16 and 17.
    let fields: Vec<&str> = own.rsplit_once(')')?.1.split_whitespace().collect();
    let own = fields.get(13..15)?.iter().map_while(|field| field.parse::<u64>().ok()).sum();
    let busy = user + nice + system + irq + soft;
    Some(Reading { all: busy + idle + wait, busy, own })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn work_of_a_child_is_not_of_others() {
        let load = Load::start();
        let mut child = std::process::Command::new("sh");
        child.args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"]);
        assert!(child.status().expect("sh runs").success());
        let share = load.of_others().expect("Linux tells");
        assert!((0.0..=1.0).contains(&share), "{share}");
        let (before, now) = (load.0.expect("Linux tells"), read().expect("Linux tells"));
        assert!(now.own > before.own, "the child's time is counted");
    }
}
