// SPDX-License-Identifier: MIT OR Apache-2.0
//! What bash completes, with the script that emud prints.

use std::process::Command;

use emud::experiment::scenario::shipped as scenarios;
use emud::profile::shipped as profiles;
use support::lab::run;

/// `docker` prints two containers, `podman` is not there, `ip` prints an interface per namespace.
const PROGRAMS: &str = r#"
docker() { [ "$*" = "ps --format {{.Names}}" ] && printf 'web\nphone\n'; }
podman() { return 1; }
ip() { if [ "$1" = -n ]; then echo "2: of-$2@if3: <UP>"; else echo "1: lo: <UP>"; echo "2: eth0: <UP>"; fi; }
"#;

/// Completes the end of a line.
fn completed(line: &str) -> Vec<String> {
    completed_with(PROGRAMS, line)
}

fn completed_with(programs: &str, line: &str) -> Vec<String> {
    let emud = support::emud_path();
    let script = format!(
        "eval \"$({emud} completions bash)\"; {programs}
         COMP_LINE={line:?}; read -ra COMP_WORDS <<<\"$COMP_LINE\"
         case $COMP_LINE in *' ') COMP_WORDS+=('') ;; esac
         COMP_POINT=${{#COMP_LINE}}; COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
         _emud_live emud \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        emud = emud.display()
    );
    let said = run(Command::new("bash").args(["--norc", "-c", &script]));
    assert_eq!(said.err, "", "{line}");
    let words = said.out.lines().filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

#[test]
fn names_that_exist() {
    let all =
        |shipped: Vec<&str>| -> Vec<String> { shipped.into_iter().map(str::to_owned).collect() };
    let profiles = all(profiles::SHIPPED.iter().map(|one| one.name).collect());
    let scenarios = all(scenarios::SHIPPED.iter().map(|one| one.name).collect());
    for line in [
        "emud attach eth0 --profile ",
        "emud profile show ",
        "emud run -p ",
    ] {
        let found = completed(line);
        assert!(
            profiles.iter().all(|name| found.contains(name)),
            "{line}: {found:?}"
        );
    }
    for line in ["emud run --scenario ", "emud scenario plan "] {
        let found = completed(line);
        assert!(
            scenarios.iter().all(|name| found.contains(name)),
            "{line}: {found:?}"
        );
    }
    assert_eq!(completed("emud attach "), ["lo", "eth0"]);
    assert_eq!(completed("emud detach e"), ["eth0"]);
    assert_eq!(completed("emud --netns blue show "), ["of-blue"]);
    assert_eq!(completed("emud list --container "), ["web", "phone"]);
    assert_eq!(completed("emud attach --container p"), ["phone"]);
}

#[test]
fn verbs_and_options() {
    let verbs = completed("emud ");
    for verb in ["attach", "watch", "metrics", "scenario"] {
        assert!(verbs.iter().any(|word| word == verb), "{verb} in {verbs:?}");
    }
    // Internal ones.
    for verb in ["hold-run", "node-run", "renew", "guard", "collect"] {
        assert!(
            !verbs.iter().any(|word| word == verb),
            "{verb} in {verbs:?}"
        );
        assert_eq!(completed(&format!("emud {verb}")), [""; 0]);
    }
    let options = completed("emud attach eth0 --re");
    assert_eq!(options, ["--reverse", "--replace"]);
    for shell in ["zsh", "fish"] {
        let emud = support::emud_path();
        let script = run(Command::new(emud).args(["completions", shell]))
            .expect(0)
            .out;
        assert!(
            script.contains("attach") && !script.contains("hold-run"),
            "{shell}"
        );
    }
}

/// A container chooses the names of its interfaces.
#[test]
fn names_are_not_run() {
    let names = r#"echo "2: eth\$(echo bad >&2)@if3: <UP>"; echo '3: `echo bad >&2`: <UP>'; echo '4: br-lan.7: <UP>'"#;
    let programs = format!("ip() {{ {names}; }}\n");
    assert_eq!(
        completed_with(&programs, "emud --netns blue show "),
        ["br-lan.7"]
    );
}

/// What a misspelt verb suggests.
#[test]
fn internal_verbs_are_not_suggested() {
    let said = |words: &[&str]| {
        let said = run(Command::new(support::emud_path()).args(words)).expect(64);
        said.err.replace(char::is_whitespace, " ")
    };
    for verb in [
        "expor",
        "guart",
        "hold-ru",
        "node-ru",
        "fleet-par",
        "colleck",
    ] {
        let said = said(&[verb]);
        for internal in ["fleet-part", "guard", "hold-run", "node-run", "collect"] {
            assert!(!said.contains(internal), "{said}");
        }
    }
    assert!(said(&["expor"]).contains("'export'"));
    assert!(said(&["profile", "plo"]).contains("'plot'"));
}
