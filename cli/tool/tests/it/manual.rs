//! `completions` and `man`.

use std::process::Command;

use crate::help::COMMANDS;
use crate::support::{Folder, printed, run, text};

#[test]
fn each_shell_gets_a_script_that_knows_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = printed(&["completions", shell]);
        for word in COMMANDS.iter().filter_map(|command| command.last()).chain(&["policy", "codec"]) {
            assert!(script.contains(word), "{shell} does not know `{word}`");
        }
    }
    let (code, _, errors) = run(&["completions", "none"]);
    assert_eq!(code, 2);
    assert!(errors.contains("bash"), "{errors}");
}

/// Completes a line as bash does: calls the completion function in a bash without a terminal.
#[test]
fn bash_completes_commands_options_and_values() {
    if Command::new("bash").arg("--version").output().is_err() {
        eprintln!("skipped: there is no bash");
        return;
    }
    let folder = Folder::new();
    let script = folder.at("warptrace.bash");
    std::fs::write(&script, run(&["completions", "bash"]).1).unwrap();
    let complete = |words: &[&str]| {
        let line = format!(
            "source {}; COMP_WORDS=({}); COMP_CWORD={}; _warptrace warptrace '{}' ''; \
             echo \"${{COMPREPLY[@]}}\"",
            text(&script),
            words.join(" "),
            words.len() - 1,
            words.last().unwrap(),
        );
        let output = Command::new("bash").args(["--norc", "-c", &line]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(complete(&["warptrace", "ver"]), "verify");
    assert_eq!(complete(&["warptrace", "demo", "--poli"]), "--policy");
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = Folder::new();
    let pages = folder.at("man/man1");
    printed(&["man", "-o", text(&pages)]);
    for command in COMMANDS {
        let name = [&["warptrace"], command].concat().join("-");
        let page = std::fs::read_to_string(pages.join(format!("{name}.1"))).unwrap();
        assert!(page.contains(".TH "), "{name}");
        assert!(page.contains(".SH OPTIONS"), "{name}");
    }
    let demo = std::fs::read_to_string(pages.join("warptrace-demo.1")).unwrap();
    assert!(demo.contains("policy") && demo.contains(".SH RECORDING"), "{demo}");

    std::fs::write(folder.at("file"), "").unwrap();
    let (code, _, errors) = run(&["man", "-o", text(&folder.at("file/below"))]);
    assert_eq!(code, 1);
    assert!(errors.contains("cannot write manual pages to"), "{errors}");
}
