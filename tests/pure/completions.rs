// SPDX-License-Identifier: MIT OR Apache-2.0
//! What shells complete, with the scripts that emud prints: bash does it here; zsh and fish run the same function
//! for names, which sh runs here.

use std::process::Command;

use emud::experiment::scenario::shipped as scenarios;
use emud::profile::shipped as profiles;
use support::lab::run;

/// `docker` prints two containers, `podman` is not there, `ip` prints an interface per namespace, `ls` two namespaces.
const PROGRAMS: &str = r#"
docker() { [ "$*" = "ps --format {{.Names}}" ] && printf 'web\nphone\n'; }
podman() { return 1; }
ls() { [ "$*" = /run/netns ] && printf 'red\nblue\n$(bad)\n'; }
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
    assert_eq!(completed("emud list --netns "), ["red", "blue"]);
    assert_eq!(completed("emud --netns r"), ["red"]);
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

/// The function that zsh and fish run by sh, as it stands in their scripts.
fn names_of(shell: &str) -> String {
    let script = run(Command::new(support::emud_path()).args(["completions", shell])).expect(0);
    let after = script.out.split("sh -c '").nth(1).expect("no function");
    let text = after.split("\n_emud_names \"$@\"' emud ").next().unwrap();
    // In both shells, what is between apostrophes is as it is: but for this in fish.
    assert!(!text.contains('\'') && !text.contains("\\\\"), "{text}");
    text.to_owned()
}

#[test]
fn zsh_and_fish_have_the_names_of_bash() {
    let (zsh, fish) = (names_of("zsh"), names_of("fish"));
    assert_eq!(zsh, fish);
    let bash = run(Command::new(support::emud_path()).args(["completions", "bash"])).expect(0);
    assert!(bash.out.contains(&zsh));
    let found = |words: &[&str]| {
        let script = format!("{PROGRAMS}{zsh}\n_emud_names \"$@\"");
        let (cur, before) = words.split_last().unwrap();
        let mut sh = Command::new("sh");
        sh.args(["-c", &script, "emud", cur]).args(before);
        let said = run(&mut sh);
        assert_eq!(said.err, "", "{words:?}");
        said.out.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(found(&["emud", "attach", ""]), ["interface", "lo", "eth0"]);
    let blue = ["emud", "--netns", "blue", "show", ""];
    assert_eq!(found(&blue), ["interface", "of-blue"]);
    let netns = ["emud", "list", "--netns", ""];
    assert_eq!(found(&netns), ["netns", "red", "blue"]);
    // A value of an option is no argument.
    let after = ["emud", "attach", "--profile", "lte", ""];
    assert_eq!(found(&after), ["interface", "lo", "eth0"]);
    let containers = ["emud", "attach", "--container", "p"];
    assert_eq!(found(&containers), ["container", "web", "phone"]);
    let of_profile = found(&["emud", "attach", "eth0", "--profile", "l"]);
    assert_eq!(of_profile[0], "profile");
    assert_eq!(
        of_profile[1..],
        profiles::SHIPPED
            .iter()
            .map(|one| one.name)
            .collect::<Vec<_>>()
    );
    let of_scenario = found(&["emud", "scenario", "plan", ""]);
    assert_eq!(of_scenario[0], "scenario");
    assert_eq!(
        of_scenario[1..],
        scenarios::SHIPPED
            .iter()
            .map(|one| one.name)
            .collect::<Vec<_>>()
    );
    for other in [
        &["emud", ""][..],
        &["emud", "attach", "--re"],
        &["emud", "doctor", ""],
    ] {
        assert_eq!(found(other), [""; 0], "{other:?}");
    }
}

/// What the shell itself does with them, which needs the shell.
#[test]
fn zsh_and_fish_use_the_names() {
    let script = |shell| {
        run(Command::new(support::emud_path()).args(["completions", shell]))
            .expect(0)
            .out
    };
    let zsh = script("zsh");
    // The function that zsh calls is the one that finds names first, and then calls that of clap.
    for once in [
        "\n_emud() {\n    local -a found",
        "\n_emud_generated() {\n    typeset",
        "'') _emud_generated \"$@\" ;;",
    ] {
        assert_eq!(zsh.matches(once).count(), 1, "{once}");
    }
    assert_eq!(zsh.matches("\n_emud() {").count(), 1);
    let end = zsh.split("\n_emud() {").nth(1).unwrap();
    assert!(end.contains("if [ \"$funcstack[1]\" = \"_emud\" ]; then\n    _emud \"$@\""));
    let fish = script("fish");
    for option in [
        "profile",
        "against",
        "scenario",
        "netns",
        "container",
        "in-place",
    ] {
        let rule = format!(" -l {option} ");
        let rules = fish
            .lines()
            .filter(|line| line.contains("__emud_is") && line.contains(&rule));
        assert_eq!(rules.count(), 1, "{option}");
    }
    assert!(fish.contains("-n '__emud_is interface' -f -a '(__emud_found)'"));
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
