//! A stack overflow between operations hits a guard page: the process dies instead of corrupting another
//! lane's stack.
#![cfg(unix)]

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use warptrace_device::simt;
use warptrace_sim::{Launch, Simulator};

const CHILD: &str = "WARPTRACE_OVERFLOW_CHILD";

/// Uses at least 512 bytes of stack per level.
fn recurse(levels: u64) -> u64 {
    let frame = std::hint::black_box([levels; 64]);
    if levels == 0 { 0 } else { std::hint::black_box(recurse(frame[0] - 1) + frame[63]) }
}

#[test]
fn an_overflow_between_operations_ends_the_process() {
    if std::env::var_os(CHILD).is_some() {
        // Exceeds the lane's stack but not its neighbour's. Without a guard page, the process would not die.
        let _ = Simulator::new().stack_bytes(64 << 10).launch(&Launch::new([1, 1, 1], [64, 1, 1]), &|| {
            if simt::linear_thread() == 40 {
                recurse((72 << 10) / 512);
            }
        });
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "stack_overflow::an_overflow_between_operations_ends_the_process"]);
    let output = child.env(CHILD, "1").output().unwrap();
    let signal = output.status.signal();
    assert!(matches!(signal, Some(libc::SIGSEGV | libc::SIGBUS | libc::SIGABRT)), "{output:?}");
}
