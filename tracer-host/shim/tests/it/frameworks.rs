//! Tests of images of frameworks: machine code with the embedded PTX.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use warptrace_abi::run::RUN_PTXAS;

use super::{Built, ShimRun, built, command_of, data, run_command};

/// Name, threads per block, and bytes of dynamic shared memory of Triton's kernels in `data/triton`.
const KERNELS: [(&str, &str, &str); 5] = [
    ("softmax", "128", "16"),
    ("layer_norm", "128", "2048"),
    ("matmul", "256", "98304"),
    ("attention", "128", "57344"),
    ("specialised", "384", "131672"),
];

fn kernels(built: &Built, traced: bool, words: &[&str], variables: &[(&str, &str)]) -> ShimRun {
    run_command(
        built,
        traced,
        command_of(built, "kernels").env("TEST_DRIVER_PTX", "9.0").args(words),
        variables,
    )
}

/// Checks that the output is the same with the shim. Returns `None` if nothing can be traced.
fn both(words: &[&str], variables: &[(&str, &str)]) -> Option<ShimRun> {
    let built = built()?;
    let plain = kernels(built, false, words, variables);
    let traced = kernels(built, true, words, variables);
    assert_eq!(plain.stdout(), traced.stdout(), "{words:?}: {:?}", traced.report());
    assert!(!traced.stdout().contains("error"), "{words:?}: {}", traced.stdout());
    if traced.report().iter().any(|line| line.contains("carries no GPU code")) {
        eprintln!("skipped: built without a device compiler");
        return None;
    }
    Some(traced)
}

fn cubin(name: &str) -> String {
    data(&format!("triton/{name}.cubin"))
}

const CUTE: &str = "kernel_cutlass_collatz_tensorptri32gmemo10241_tensorptri32gmemo10241___0";

fn steps(mut value: u64) -> u64 {
    let mut count = 0;
    while value > 1 {
        value = if value % 2 == 1 { 3 * value + 1 } else { value / 2 };
        count += 1;
    }
    count
}

fn all_steps() -> String {
    (1..=70).map(|at| format!("{} ", steps(at))).collect::<String>().trim_end().to_owned()
}

#[test]
fn a_kernel_of_cute_dsl_is_traced_at_its_lines_of_python() {
    for prefix in ["", "library:"] {
        let image = format!("{prefix}{}", data("cute/collatz.cubin"));
        let Some(traced) = both(&[&image, CUTE, "32", "0"], &[]) else { return };
        assert_eq!(traced.stdout().trim_end(), all_steps());
        let log = traced.log();
        assert!(log.starts_with("image machine code\n"), "{log}");
        assert_eq!(log.matches(&format!("launch {CUTE}$traced")).count(), 2, "{log}");
        assert!(!log.contains(&format!("launch {CUTE} [")), "{log}");
        let (launches, events) = traced.verified();
        assert_eq!(launches, 2);
        assert!(events > 2 * 3 * 100, "{events} events: {:?}", traced.report());
        let trace = traced.trace();
        let locations = &trace.metadata().locations;
        let of_source = locations.iter().filter(|found| found.file == "/kernels/collatz.py");
        let lines: BTreeSet<u32> = of_source.map(|found| found.line).collect();
        // Lines of the kernel's head, and of the loop or its body.
        assert!(lines.contains(&16) && lines.range(24..=29).count() > 0, "{locations:?}");
    }
}

#[test]
fn a_kernel_of_tritons_is_traced_at_its_lines_of_python() {
    for prefix in ["", "library:"] {
        let Some(traced) = both(&[&format!("{prefix}{}", cubin("collatz")), "collatz", "32", "0"], &[])
        else {
            return;
        };
        assert_eq!(traced.stdout().trim_end(), all_steps());
        let log = traced.log();
        // The driver gets the program's image unchanged.
        assert!(log.starts_with("image machine code\n"), "{log}");
        assert_eq!(log.matches("image traced PTX").count(), 1, "{log}");
        assert_eq!(log.matches("launch collatz$traced").count(), 2, "{log}");
        assert!(!log.contains("launch collatz ["), "{log}");
        // Attributes that the program sets before and after the first launch.
        for value in [50, 60] {
            assert!(log.contains(&format!("attribute 9 {value} of collatz$traced\n")), "{log}");
        }
        if prefix.is_empty() {
            // The copy is unloaded with the program's module.
            assert!(log.contains("unload collatz$traced"), "{log}");
        }
        let (launches, events) = traced.verified();
        assert_eq!(launches, 2);
        assert!(events > 2 * 3 * 120, "{events} events: {:?}", traced.report());
        let trace = traced.trace();
        let lines: BTreeSet<(String, u32)> =
            trace.metadata().locations.iter().map(|found| (found.file.clone(), found.line)).collect();
        // A block without a line from the compiler has a line of the PTX, which the trace keeps.
        let of_text = lines.iter().filter(|(file, _)| file != "/kernels/kernels.py");
        assert!(of_text.clone().count() <= 1, "{lines:?}");
        assert!(
            of_text.clone().all(|(file, _)| matches!(
                trace.text(file, usize::MAX),
                Ok(warptrace_decoder::KeptText::Whole(_))
            )),
            "{lines:?}"
        );
        assert!(lines.iter().any(|(_, line)| (14..=17).contains(line)), "{lines:?}");
    }
}

#[test]
fn kernels_of_tritons_are_traced_whatever_they_use() {
    let assembler = assembler();
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("copy.ptx");
    // The kernels compute in floating point, which the test driver does not. Checks the driver's input.
    for (name, threads, shared) in KERNELS {
        let variables =
            [("TEST_DRIVER_SKIPS", "1"), ("TEST_DRIVER_KEEP", kept.to_str().expect("a plain name"))];
        let Some(traced) = both(&[&cubin(name), name, threads, shared], &variables) else { return };
        let log = traced.log();
        assert_eq!(log.matches("image traced PTX").count(), 1, "{name}: {log}");
        assert!(log.contains(&format!("launch {name}$traced [3, 1, 1] [{threads}, 1, 1]")), "{name}: {log}");
        // The copy has a separate module, has the kernel's attributes, and assembles.
        let copy = std::fs::read_to_string(&kept).expect("the driver keeps it");
        assert_eq!(copy.matches(".entry").count(), 1, "{name}");
        assert!(copy.contains(".version 9.0") && copy.contains(&format!(".reqntid {threads}")), "{name}");
        assert_eq!(copy.contains("setmaxnreg"), name == "specialised", "{name}");
        if let Some(assembler) = &assembler {
            let to = folder.path().join("copy.cubin");
            let output =
                Command::new(assembler).args(["-arch", "sm_90a"]).arg(&kept).arg("-o").arg(to).output();
            let output = output.expect("it runs");
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        }
        let trace = traced.trace();
        assert_eq!(trace.launches().count(), 2, "{name}: {:?}", traced.report());
        let of_source = trace.metadata().locations.iter().filter(|found| found.file.ends_with(".py")).count();
        assert!(of_source * 2 >= trace.metadata().locations.len(), "{name}: {of_source} at lines of Python");
    }
}

#[test]
fn of_many_kernels_only_those_that_are_launched_get_copies() {
    let mut text = ".version 8.0\n.target sm_80\n.address_size 64\n".to_owned();
    for at in 0..100 {
        let _ = write!(
            text,
            ".visible .entry k{at}(.param .u64 out)\n{{\n.reg .b32 %r<3>;\n.reg .b64 %rd<3>;\n\
             ld.param.u64 %rd1, [out];\nmov.u32 %r1, {at};\nst.global.u32 [%rd1], %r1;\nret;\n}}\n"
        );
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("many.ptx");
    std::fs::write(&path, text).expect("a file");
    let Some(traced) = both(&[path.to_str().expect("a plain name"), "many"], &[]) else { return };
    let log = traced.log();
    assert_eq!(log.matches("image traced PTX").count(), 3, "{log}");
    assert_eq!(log.matches("image PTX").count(), 1, "{log}");
    assert_eq!(traced.verified().0, 6, "{:?}", traced.report());
    let names: Vec<String> =
        traced.trace().metadata().kernels.iter().map(|kernel| kernel.name.to_string()).collect();
    assert_eq!(names, ["k0", "k50", "k99"]);
}

/// Returns a `ptxas`. Prints a message and returns `None` if none exists.
fn assembler() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // The shim cannot be loaded into an assembler of another architecture.
    let folder = if cfg!(target_arch = "aarch64") { ".toolchain/aarch64/cuda" } else { ".toolchain/cuda" };
    let [first, second] =
        [folder, ".toolchain/cuda"].map(|folder| root.join(folder).join("nvidia/cu13/bin/ptxas"));
    let found = [first.to_str().expect("a plain name"), second.to_str().expect("a plain name"), "ptxas"]
        .into_iter()
        .find(|tool| Command::new(tool).arg("--version").output().is_ok())
        .map(str::to_owned);
    if found.is_none() {
        eprintln!("skipped: there is no ptxas");
    }
    found
}

#[test]
fn what_the_driver_cannot_assemble_is_assembled_once_by_ptxas() {
    let (Some(built), Some(tool)) = (built(), assembler()) else { return };
    let cache = tempfile::tempdir().expect("a folder");
    let path = cache.path().to_str().expect("a plain name");
    let counting = cache.path().join("ptxas");
    let script = format!("#!/bin/sh\necho \"$@\" >> {path}/calls\nexec {tool} \"$@\"\n");
    std::fs::write(&counting, script).expect("a file");
    std::fs::set_permissions(&counting, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("our file");
    let counting = counting.to_str().expect("a plain name");
    let words = [&*cubin("collatz"), "collatz", "32", "0"];
    let variables = [("TEST_DRIVER_REFUSES", "1"), (RUN_PTXAS, counting), ("XDG_CACHE_HOME", path)];
    for round in 0..2 {
        let traced = kernels(built, true, &words, &variables);
        if traced.report().iter().any(|line| line.contains("carries no GPU code")) {
            eprintln!("skipped: built without a device compiler");
            return;
        }
        assert_eq!(traced.log().matches("image traced machine code").count(), 1, "{}", traced.log());
        assert_eq!(traced.verified().0, 2, "round {round}: {:?}", traced.report());
        let calls = std::fs::read_to_string(cache.path().join("calls")).expect("it was called");
        assert_eq!(calls.lines().count(), 1, "round {round}: {calls}");
        assert!(calls.contains("-arch sm_90a"), "{calls}");
    }
    // Without an assembler the kernel runs untraced, and the report has a hint.
    let variables = [("TEST_DRIVER_REFUSES", "1"), (RUN_PTXAS, "/nowhere/ptxas"), ("XDG_CACHE_HOME", path)];
    let traced = kernels(built, true, &words, &variables);
    assert!(traced.log().contains("launch collatz ["), "{}", traced.log());
    let report = traced.report();
    assert!(report.iter().any(|line| line.contains("--ptxas names an assembler")), "{report:?}");
}

#[test]
fn an_assembler_that_the_program_starts_keeps_the_text_and_makes_the_same_code() {
    let (Some(built), Some(tool)) = (built(), assembler()) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let text = std::fs::read_to_string(data("kernels.ptx")).expect("it is there");
    // With `.loc` the assembler keeps the text in any case.
    let bare: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with(".loc")).collect();
    let ptx = folder.path().join("bare.ptx");
    std::fs::write(&ptx, bare.join("\n")).expect("a file");
    let made = |traced: bool| {
        let to = folder.path().join("made.cubin");
        let mut command = Command::new(&tool);
        command.args(["-arch", "sm_90"]).arg(&ptx).arg("-o").arg(&to);
        let run = run_command(built, traced, &mut command, &[]);
        assert!(run.output.status.success(), "{}", String::from_utf8_lossy(&run.output.stderr));
        std::fs::read(&to).expect("it was made")
    };
    let (plain, traced) = (made(false), made(true));
    let has = |bytes: &[u8], word: &[u8]| bytes.windows(word.len()).any(|part| part == word);
    assert!(!has(&plain, b".nv_debug_ptx_txt") && has(&traced, b".nv_debug_ptx_txt"));
    let version = |traced: bool| {
        let mut command = Command::new(&tool);
        run_command(built, traced, command.arg("--version"), &[]).stdout()
    };
    assert_eq!(version(false), version(true));
}
