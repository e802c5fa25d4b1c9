//! The attribute puts points at waits and changes nothing else.

use warptrace_device::{LocationKind, SourceLocation};
use warptrace_macros::kernels;

#[kernels(device = warptrace_device, first_id = 11)]
#[allow(dead_code, reason = "only its table is looked at")]
mod all {
    use warptrace_device::{Global, simt};

    /// Contains no branch.
    fn meet() {
        // SAFETY: as for the kernel.
        unsafe { simt::sync_threads() };
    }

    fn counted(flag: Global<u32>) {
        // SAFETY: in the array.
        while unsafe { flag.get(0) } == 0 {
            simt::spin_hint();
        }
        loop {
            simt::spin_hint();
            // SAFETY: in the array.
            if unsafe { flag.get(1) } != 0 {
                break;
            }
        }
    }

    #[untraced]
    fn silent() {
        simt::spin_hint();
    }

    /// Another function with this name.
    fn spin_hint() {}

    #[kernel]
    pub fn waits(flag: Global<u32>) {
        meet();
        spin_hint();
        counted(flag);
        #[untraced]
        simt::spin_hint();
        silent();
    }
}

#[kernels(device = warptrace_device, only_marked)]
mod marked {
    use warptrace_device::simt;

    #[kernel]
    pub fn waits() {
        simt::spin_hint();
        trace!("behind");
    }
}

#[test]
fn waits_have_points_behind_all_others() {
    let row = |location: &SourceLocation| {
        let SourceLocation { id, name, kind, parent, .. } = location;
        format!("{id} in {parent} {kind}: {name}")
    };
    let names: Vec<&str> = all::LOCATIONS.iter().map(|location| location.name).collect();
    assert_eq!(
        names,
        [
            "counted",
            "counted: while unsafe { flag.get(0) } == 0",
            "counted: end of while unsafe { flag.get(0) } == 0",
            "counted: loop",
            "counted: end of loop",
            "waits",
        ]
    );
    let rows: Vec<String> = all::MODULE.waits.iter().map(row).collect();
    assert_eq!(
        rows,
        [
            "17 in 0 barrier: meet: simt::sync_threads()",
            "18 in 0 waited: meet: behind simt::sync_threads()",
            "19 in 12 wait: counted: simt::spin_hint()",
            "20 in 12 waited: counted: behind simt::spin_hint()",
            "21 in 14 wait: counted: simt::spin_hint()",
            "22 in 14 waited: counted: behind simt::spin_hint()",
        ]
    );
    assert!(marked::MODULE.waits.is_empty());
    let pairs = all::MODULE.waits.chunks(2);
    assert!(pairs.clone().all(|pair| pair[0].id + 1 == pair[1].id && pair[1].kind == LocationKind::Waited));
    assert!(pairs.into_iter().all(|pair| pair[0].line == pair[1].line && pair[0].column < pair[1].column));
}
