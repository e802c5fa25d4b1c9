//! Images whose machine code and PTX differ, images linked from parts, and the count of launches.

use warptrace_abi::run::{RUN_PTXAS, RUN_SPEC};
use warptrace_format::file::LaunchInfo;

use crate::built::built;
use crate::{ShimRun, command_of, data, run_command, spec};

fn launched(words: &[&str], variables: &[(&str, &str)]) -> Option<ShimRun> {
    let built = built()?;
    let run = |traced| run_command(built, traced, command_of(built, "launches").args(words), variables);
    let (plain, traced) = (run(false), run(true));
    assert_eq!(plain.stdout(), traced.stdout(), "{words:?}: {:?}", traced.report());
    assert_eq!(String::from_utf8_lossy(&traced.output.stderr), "", "{words:?}");
    if traced.report().iter().any(|line| line.contains("carries no GPU code")) {
        eprintln!("skipped: built without a device compiler");
        return None;
    }
    Some(traced)
}

#[test]
fn ptx_of_another_architecture_is_traced_only_if_that_is_asked_for() {
    let other = spec(|spec| spec.other_architecture = true);
    for (image, ptx, code) in [("arch", "80", "90"), ("arch-a", "90", "90a")] {
        let image = data(&format!("parts/{image}.fatbin"));
        let words = ["module", &image, "5", "_Z5whichPi", "1", "32"];
        let Some(traced) = launched(&words, &[]) else { return };
        let lines = traced.report();
        assert_eq!(lines[2], "1 launch seen: 0 traced, 1 not", "{lines:?}");
        let differ = format!("its PTX is for compute_{ptx}, and its machine code for sm_{code}");
        assert!(lines[0].ends_with("t.wtrc: 1 launch, not traced"), "{lines:?}");
        assert!(lines[1].starts_with(&format!("not traced: 1 launch of which: {differ}")), "{lines:?}");
        assert!(traced.log().contains("launch _Z5whichPi [") && !traced.log().contains("$traced"));
        let trace = traced.trace();
        let launch = trace.launches().next().expect("a launch");
        assert_eq!((launch.grid(), launch.block(), launch.is_recorded()), ([1, 1, 1], [32, 1, 1], false));
        assert_eq!(trace.metadata().kernels[launch.kernel() as usize].name, "which");
        let Some(traced) = launched(&words, &[(RUN_SPEC, &other)]) else { return };
        let remark = format!("which: {differ}, which may compute something else; the PTX was traced");
        assert!(traced.report().iter().any(|line| line.starts_with(&remark)), "{:?}", traced.report());
        let trace = traced.trace();
        assert!(trace.unrecorded().notes[0].starts_with(&remark), "{:?}", trace.unrecorded());
        // If the driver is told to compile the PTX, it runs no other code.
        let Some(traced) = launched(&words, &[("CUDA_FORCE_PTX_JIT", "1")]) else { return };
        assert_eq!(traced.verified().0, 1, "{:?}", traced.report());
        // If making the copy takes long, a line reports that.
        let rest = traced.report().into_iter().skip(1).filter(|line| !line.contains(" to make, "));
        assert_eq!(rest.count(), 0, "{:?}", traced.report());
    }
}

#[test]
fn parts_that_were_linked_are_traced_by_the_ptx_of_all() {
    for how in ["module", "library"] {
        let image = data("parts/shapes.fatbin");
        let folder = tempfile::tempdir().expect("a folder");
        let kept = folder.path().join("kept.ptx");
        let variables = [("TEST_DRIVER_KEEP", kept.to_str().expect("a plain name"))];
        let Some(traced) = launched(&[how, &image, "5", "_Z3runPii", "2", "64"], &variables) else { return };
        let text = std::fs::read_to_string(&kept).expect("a text");
        let limits: Vec<usize> = text.match_indices(".maxnreg ").map(|(at, _)| at).collect();
        assert!(!limits.is_empty(), "{text}");
        assert!(limits.iter().all(|at| text[..*at].rfind(".func ") < text[..*at].rfind(".entry ")), "{text}");
        assert!(traced.folder.path().join("t.wtrc").exists(), "{:?} {}", traced.report(), traced.log());
        let (launches, events) = traced.verified();
        assert!(launches == 1 && events > 4, "{:?}", traced.report());
        // Both files have locations: the kernel's file, and the file of a function that it calls.
        let trace = traced.trace();
        for file in ["main.cu", "shapes.cu"] {
            let locations = &trace.metadata().locations;
            assert!(locations.iter().any(|location| location.file.ends_with(file)), "{locations:?}");
        }
    }
}

#[test]
fn what_the_driver_refuses_when_it_is_looked_up_runs_as_it_is() {
    let late = [("TEST_DRIVER_REFUSES_LATE", "1"), (RUN_PTXAS, "/nowhere/ptxas")];
    // The first image's kernel has a copy in a separate module. The second image is one text with its copies.
    for (image, kernel) in [("kernels.ptx", "_Z5scaleIjEvPT_S0_"), ("parts/shapes.fatbin", "_Z3runPii")] {
        for how in ["module", "library"] {
            let words = [how, &data(image), "5", kernel, "1", "32"];
            let Some(traced) = launched(&words, &late) else { return };
            let lines = traced.report();
            assert!(lines.iter().any(|line| line.contains("the driver refused its PTX")), "{lines:?}");
            assert!(lines.contains(&"1 launch seen: 0 traced, 1 not".to_owned()), "{lines:?}");
        }
    }
}

#[test]
fn what_the_linker_was_told_is_no_option_of_the_assembler() {
    for (image, kernel) in [("while", "_Z5halveyPiS_"), ("child", "_Z6parentPi")] {
        let image = data(&format!("parts/{image}.fatbin"));
        let words = ["module", &image, "5", kernel, "1", "32"];
        // The test driver has no code for the function that `halve` calls.
        let Some(traced) = launched(&words, &[("TEST_DRIVER_SKIPS", "1")]) else { return };
        assert!(!traced.report().iter().any(|line| line.contains("cudadevrt")), "{:?}", traced.report());
    }
}

#[test]
fn kernels_that_launch_kernels_are_named() {
    let image = data("parts/child.fatbin");
    let words = ["module", &image, "5", "_Z6parentPi", "1", "32"];
    // The test driver has no code for launches from kernels.
    let Some(traced) = launched(&words, &[("TEST_DRIVER_SKIPS", "1")]) else { return };
    let lines = traced.report();
    let unseen = "parent: it launches kernels itself, and these are not seen";
    assert!(lines.iter().any(|line| line == unseen), "{lines:?}");
    assert_eq!(traced.trace().unrecorded().notes, [unseen]);
}

#[test]
fn all_launches_are_accounted_for() {
    let image = data("kernels.ptx");
    let (scale, fail) = ("_Z5scaleIjEvPT_S0_", "fail");
    let words = ["library", &image, "5", scale, "1", "32", fail, "1", "32", scale, "1", "32"];
    let named = spec(|spec| spec.recording.window.kernels = vec!["scale*".to_owned()]);
    let Some(traced) = launched(&words, &[(RUN_SPEC, &named)]) else { return };
    let lines = traced.report();
    assert!(lines.contains(&"3 launches seen: 2 traced, 1 not".to_owned()), "{lines:?}");
    assert!(lines.contains(&"not traced, as asked: 1 launch".to_owned()), "{lines:?}");
    let cubin = data("kernels-cubin.fatbin");
    let words = ["module", &cubin, "5", "walk", "1", "32"];
    let Some(none) = launched(&words, &[(RUN_SPEC, &named), ("TEST_DRIVER_SKIPS", "1")]) else { return };
    let expected = ["not traced, as asked: 1 launch", "1 launch seen: 0 traced, 1 not"];
    let last = "no launch was asked for; launched were walk";
    assert_eq!(none.report()[1..], [&expected[..], &[last]].concat(), "{:?}", none.report());
    assert_eq!(none.trace().not_traced(), None);
    let trace = traced.trace();
    let kernel = |launch: &LaunchInfo| trace.metadata().kernels[launch.kernel() as usize].name.clone();
    let launches: Vec<String> = trace.launches().map(kernel).collect();
    assert_eq!(launches, ["scale<unsigned int>", "fail", "scale<unsigned int>"]);
    let unrecorded = &trace.unrecorded().launches;
    assert_eq!((unrecorded.len(), unrecorded[0].launches, &*unrecorded[0].kernel), (1, 1, "fail"));
}

#[test]
fn where_all_blocks_fit_those_of_the_copy_fit_too() {
    let image = data("kernels.ptx");
    // In the test driver, two blocks of a kernel fit on a multiprocessor, but only one block of its usual
    // copy.
    for (blocks, copies) in [("4", 1), ("5", 2), ("8", 2), ("9", 1)] {
        let words = ["module", &image, "5", "_Z5scaleIjEvPT_S0_", blocks, "32"];
        let Some(traced) = launched(&words, &[("TEST_DRIVER_LARGE", "1")]) else { return };
        assert_eq!(traced.verified().0, 1, "{blocks}: {:?}", traced.report());
        assert_eq!(traced.log().matches("image traced PTX").count(), copies, "{blocks}: {}", traced.log());
        let trace = traced.trace();
        let notes = &trace.unrecorded().notes;
        let expected = "scale<unsigned int>: 2 blocks of 32 threads fit on a multiprocessor, 1 of its copy";
        assert_eq!(notes.iter().any(|note| note == expected), copies == 1, "{notes:?}");
        // Without `TEST_DRIVER_LARGE`, the run uses the usual copy. The copy with fewer registers must have
        // the same locations.
        let Some(all) = launched(&words, &[]) else { return };
        assert_eq!(all.trace().metadata().locations, trace.metadata().locations);
    }
}

#[test]
fn data_of_many_warps_is_copied_into_page_locked_memory() {
    let words = ["module", &data("parts/arch.fatbin"), "5", "_Z5whichPi", "1500", "32"];
    let other = spec(|spec| spec.other_architecture = true);
    let Some(traced) = launched(&words, &[(RUN_SPEC, &other)]) else { return };
    assert_eq!(traced.verified().0, 1, "{:?}", traced.report());
    assert_eq!(traced.trace().streams(0, 0).expect("accounts").count(), 1500);
    // The class of each warp, and its account.
    assert_eq!(traced.log().matches(" bytes into page-locked memory").count(), 2, "{}", traced.log());
}

#[test]
fn copies_are_made_with_the_module_where_functions_are_loaded_with_it() {
    let image = data("kernels.ptx");
    for how in ["module", "library"] {
        let words = [how, &image, "5", "fail", "1", "32"];
        for (mode, is_eager) in [("LAZY", false), ("EAGER", true)] {
            let variables = [("CUDA_MODULE_LOADING", mode)];
            let Some(traced) = launched(&words, &variables) else { return };
            let log = traced.log();
            let before = log.split("launch ").next().unwrap_or_default();
            let copies = before.matches("image traced PTX").count();
            // The image has three kernels. With lazy loading only the launched kernel has a copy.
            assert_eq!(copies, if is_eager { 3 } else { 1 }, "{how} {mode}: {log}");
        }
    }
}
