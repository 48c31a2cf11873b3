// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud top` in a real terminal: tmux, whose screen the test reads.

use std::time::Duration;

use serde_json::Value;
use support::emud_path;
use support::lab::{self, Lab, sh, wait_until};

const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal of tmux, with a separate server.
struct Screen(String);

impl Screen {
    fn start(lab: &Lab, width: u16, height: u16) -> Self {
        let screen = Self(format!("{}-{width}", lab.a));
        // The command's end is visible: the shell behind it prints its exit code.
        let command = format!(
            "{} top --every 200ms; echo \"exit $?\"; cat",
            emud_path().display()
        );
        sh(&format!(
            "tmux -L {} -f /dev/null new-session -d -x {width} -y {height} '{command}'",
            screen.0
        ));
        screen
    }

    fn shows(&self) -> String {
        sh(&format!("tmux -L {} capture-pane -p", self.0))
    }

    fn press(&self, keys: &str) {
        sh(&format!("tmux -L {} send-keys {keys}", self.0));
    }

    fn wait(&self, text: &str) {
        wait_until(&format!("the screen shows {text:?}"), PATIENCE, || {
            self.shows().contains(text)
        });
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = lab::run(std::process::Command::new("tmux").args(["-L", &self.0, "kill-server"]));
    }
}

/// Shows a link at two sizes; keys change its delay, loss, state and profile.
pub fn changes_a_link() {
    let lab = Lab::new();
    lab.emud(&["attach", "va", "--profile", "hsdpa"]).expect(0);
    for (width, height) in [(80, 24), (200, 50)] {
        let screen = Screen::start(&lab, width, height);
        screen.wait("va");
        screen.wait("q quit");
        println!("{}", screen.shows());
        screen.press("q");
        screen.wait("exit 0");
        // The screen of before is back.
        assert!(!screen.shows().contains("q quit"), "{}", screen.shows());
    }
    // Alone on the screen, so that it is the selected one. The last line shows whole commands.
    let screen = Screen::start(&lab, 198, 24);
    screen.wait("va");
    let delay = || lab.shown("/up/delay/mean_ns");
    select(&screen, &lab);
    screen.press("d 8 0 m s Enter");
    wait_until("the delay changes", PATIENCE, || delay() == 80_000_000);
    screen.press("l 5 0 % Enter");
    wait_until("the loss changes", PATIENCE, || {
        lab.show()["up"]["loss"] == 0.5
    });
    // Another direction is not affected.
    assert_eq!(lab.show()["down"]["loss"], 0.0);
    screen.press("s");
    wait_until("it goes down", PATIENCE, || {
        lab.show()["up"]["state"] == "down"
    });
    screen.wait("down");
    screen.press("d 8 0 x Enter");
    screen.wait("`x` is not a unit");
    assert_eq!(delay(), 80_000_000);
    let before = lab.show();
    let seed = before["seed"].clone();
    // Engine hold alone has classes.
    if before["engine"] != "hold" {
        screen.press("p d i f f s e r v - f a i r Enter");
        screen.wait("it sends a packet at a time");
        assert_eq!(lab.show()["profile"], "hsdpa");
    }
    screen.press("p d s l Enter");
    let exchanged = || {
        let said = lab.emud(&["show", "va", "--json"]);
        said.code == 0 && said.json()["interfaces"][0]["profile"] == "dsl"
    };
    wait_until("the profile changes", PATIENCE, exchanged);
    assert_eq!(lab.show()["seed"], seed);
    lab.in_a("tc filter del dev va egress");
    screen.wait("TAMPERED");
    loses_nothing(&screen, &lab);
    screen.press("q");
    screen.wait("exit 0");
}

/// What an attach was given stays, or so does the profile.
fn loses_nothing(screen: &Screen, lab: &Lab) {
    let process = std::process::id().to_string();
    let given: [(&[&str], &str); 2] = [
        (&["--spare", "192.0.2.0/24"], "va: it spares traffic"),
        (&["--while-pid", &process], "va: it ends with a process"),
    ];
    let detach = || {
        lab.detach();
        wait_until("the row is gone", PATIENCE, || {
            !screen.shows().contains(&format!("{}:va", lab.a))
        });
    };
    let attach = |options: &[&str]| {
        lab.emud(&[&["attach", "va", "--profile", "hsdpa"], options].concat())
            .expect(0);
        screen.wait(&format!("{}:va", lab.a));
        select(screen, lab);
    };
    for (options, why) in given {
        detach();
        attach(options);
        screen.press("p");
        screen.wait(why);
        assert_eq!(lab.show()["profile"], "hsdpa");
    }
    detach();
    lab.in_a("tc qdisc add dev va root handle 7: pfifo limit 77");
    attach(&["--offload", "keep", "--replace"]);
    screen.press("p d s l Enter");
    screen.wait("--profile dsl --exchange");
    assert_eq!(lab.show()["profile"], "dsl");
    let device = lab.in_a("ip -d link show va");
    assert!(!device.contains("gso_max_segs 1 "), "{device}");
    lab.detach();
    let root = lab.in_a("tc qdisc show dev va root");
    assert!(root.contains("pfifo 7: "), "{root}");
    lab.in_a("tc qdisc del dev va root");
}

/// Other links of the host may be above.
fn select(screen: &Screen, lab: &Lab) {
    screen.press("Home");
    let end: String = lab
        .a
        .chars()
        .rev()
        .take(6)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect();
    let own = format!("{end}:va");
    for _ in 0..50 {
        screen.press("d");
        let asks = || screen.shows().contains("(such as 80ms)");
        // The link of another test may go while it is selected.
        wait_until("a prompt, or nothing is selected", PATIENCE, || {
            asks() || screen.shows().contains("this link is gone")
        });
        let is_own = screen.shows().lines().any(|line| {
            line.starts_with("delay of") && line.contains(&own) && line.contains(" up:")
        });
        if asks() || screen.shows().contains("(Escape)") {
            screen.press("Escape");
        }
        if is_own {
            std::thread::sleep(Duration::from_millis(600));
            return;
        }
        std::thread::sleep(Duration::from_millis(600));
        screen.press("Down");
    }
    panic!("{own} is not on the screen:\n{}", screen.shows());
}

/// Two lines of JSON; only the second one has measured figures.
pub fn lines() {
    let lab = Lab::new();
    lab.emud(&["attach", "va", "--profile", "hsdpa"]).expect(0);
    let said = lab::emud(&["top", "--json", "--every", "300ms", "--count", "2"]).expect(0);
    let lines: Vec<Value> = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 2);
    for (line, measured) in lines.iter().zip([false, true]) {
        support::validator::assert_valid("top", line);
        assert_eq!(line["interval_s"].is_number(), measured);
        let rows = line["rows"].as_array().expect("rows");
        let own: Vec<_> = rows
            .iter()
            .filter(|row| row["netns"] == lab.a.as_str())
            .collect();
        assert_eq!(own.len(), 2, "{line}");
        assert!(
            own.iter()
                .all(|row| row["measured"].is_object() == measured),
            "{line}"
        );
    }
    lab.detach();
}

/// After a signal the terminal is out of raw mode, with the screen before.
pub fn ends_by_a_signal() {
    let emud = emud_path();
    let emud = emud.display();
    let raw = "stty -a </dev/tty | grep -q -e -icanon";
    let line = format!(
        "sh -c '(until {raw}; do sleep 0.1; done; kill -TERM $$) & exec {emud} top --no-monitor'; \
         echo \"exit $?\"; stty -a | tr ' ' '\\n' | grep icanon"
    );
    let shown = support::at_terminal(80, &line);
    assert!(shown.ends_with("exit 143\nicanon\n"), "{shown:?}");
    assert!(shown.contains("\x1b[?1049l"), "{shown:?}");
}
