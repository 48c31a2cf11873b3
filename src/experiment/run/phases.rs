// SPDX-License-Identifier: MIT OR Apache-2.0
//! Determines when each program starts: in the preparation, in the measured phase, in the clean-up.

use std::collections::BTreeSet;
use std::future::pending;
use std::rc::Rc;
use std::time::Duration;

use emud_monitor::log::{ExitLine, PhaseName};
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::experiment::scenario::{Node, Program};

use super::programs::Programs;
use super::{RunError, User};

/// Interval of checks whether a service is ready.
const READY_EVERY: Duration = Duration::from_millis(50);

impl Programs {
    /// Runs the commands of the preparation, one after the other, then starts each service when
    /// those that it waits for are ready, and waits until all are. The services keep running.
    ///
    /// # Errors
    /// A command fails, a service ends, or the preparation takes too long.
    pub async fn prepare(self: &Rc<Self>) -> Result<(), RunError> {
        let plan = &self.common.plan;
        let until = Instant::now() + plan.ready_within;
        for node in &plan.nodes {
            for text in &node.prepare {
                self.must(node, text, until).await?;
            }
        }
        let mut services = JoinSet::new();
        for node in plan.nodes.iter().filter(|node| node.service) {
            let (this, node) = (self.clone(), node.clone());
            services.spawn_local(async move { this.service(&node, until).await });
        }
        while let Some(ready) = services.join_next().await {
            of_task(ready).unwrap_or(Ok(()))?;
        }
        Ok(())
    }

    /// Runs the programs under test until all have ended. Returns their exits in the plan's order.
    ///
    /// # Errors
    /// One could not be started; the others have been ended.
    pub async fn measure(self: &Rc<Self>) -> Result<Vec<ExitLine>, RunError> {
        let mut running = JoinSet::new();
        let under_test = |node: &&Node| !node.service && node.command.is_some();
        let nodes = self.common.plan.nodes.iter().filter(under_test);
        for (n, node) in nodes.enumerate() {
            let (this, node) = (self.clone(), node.clone());
            running.spawn_local(async move { (n, this.one(&node).await) });
        }
        let (mut exits, mut failed) = (vec![], None);
        while let Some(ended) = running.join_next().await {
            match of_task(ended) {
                Some((n, Ok(exit))) => exits.extend(exit.map(|exit| (n, exit))),
                Some((_, Err(e))) => {
                    failed.get_or_insert(e);
                    self.end_under_test().await;
                }
                None => {}
            }
        }
        exits.sort_by_key(|(n, _)| *n);
        match failed {
            Some(e) => Err(e),
            None => Ok(exits.into_iter().map(|(_, exit)| exit).collect()),
        }
    }

    /// Runs the commands of the clean-up in reverse order, each within its time limit; adds those that fail
    /// to `failed`.
    pub async fn clean_up(&self, failed: &mut Vec<String>) {
        for (node, text) in undone(&self.common.plan.nodes) {
            let limit = self.common.plan.clean_up_within;
            let ran = timeout(limit, self.shell(node, PhaseName::CleanUp, text)).await;
            let Ok(ran) = ran else {
                failed.push(format!(
                    "{}: `{text}` of the clean-up went on for {} s and was ended \
                     (see `clean-up-within`)",
                    node.name,
                    limit.as_secs_f64()
                ));
                self.end_cleaning().await;
                continue;
            };
            match ran {
                Ok(exit) if exit.code == Some(0) => {}
                Ok(exit) => failed.push(format!(
                    "{}: `{text}` of the clean-up ended with {}",
                    node.name,
                    exit.status()
                )),
                Err(e) => failed.push(e.to_string()),
            }
        }
    }

    /// Returns the exits of services that have ended, also of those whose output is not complete yet.
    pub async fn ended_services(&self) -> Vec<ExitLine> {
        let mut exits = vec![];
        for (service, exit) in self.services.take() {
            if service.is_over() {
                exits.push(told(exit).await);
            }
        }
        exits
    }

    async fn must(&self, node: &Node, text: &str, until: Instant) -> Result<(), RunError> {
        let ran = timeout_at(until, self.shell(node, PhaseName::Preparation, text)).await;
        match ran {
            Ok(Ok(exit)) if exit.code == Some(0) => Ok(()),
            Ok(Ok(exit)) => Err(RunError::Preparation {
                node: node.name.clone(),
                command: text.to_owned(),
                status: exit.status(),
                hint: (self.common.preparing()).map_or_else(String::new, |user| self.hint(user)),
            }),
            Ok(Err(e)) => Err(e),
            Err(_) => Err(self.too_slow(node, &format!("`{text}` did not end"))),
        }
    }

    /// Starts a service when it may start, and waits until it is ready.
    async fn service(&self, node: &Node, until: Instant) -> Result<(), RunError> {
        let Some(program) = &node.command else {
            return Ok(());
        };
        if timeout_at(until, self.turn(node)).await.is_err() {
            let others = node.waits_for.iter().collect::<Vec<_>>().join(", ");
            return Err(self.too_slow(node, &format!("it waited for {others}")));
        }
        let user = self.common.user.as_ref();
        let mut service = self.start(node, PhaseName::Preparation, program, user)?;
        if let Some(ready) = &node.ready {
            self.ready(node, ready, until, &mut service.1).await?;
        }
        self.services.borrow_mut().push(service);
        self.let_go(node);
        Ok(())
    }

    async fn ready(
        &self,
        node: &Node,
        ready: &str,
        until: Instant,
        ended: &mut oneshot::Receiver<ExitLine>,
    ) -> Result<(), RunError> {
        let program = Program::Shell(format!("exec >/dev/null 2>&1; {ready}"));
        loop {
            let user = self.common.user.as_ref();
            let asked = self.process(node, PhaseName::Preparation, &program, user)?;
            let answer = timeout_at(until, asked.wait()).await;
            if answer.is_ok_and(|exit| exit.code == Some(0)) {
                return Ok(());
            }
            if let Ok(exit) = ended.try_recv() {
                return Err(RunError::Service {
                    node: exit.node.clone(),
                    command: exit.command.join(" "),
                    status: exit.status(),
                });
            }
            if Instant::now() >= until {
                return Err(self.too_slow(node, &format!("`{ready}` never succeeded")));
            }
            sleep(READY_EVERY).await;
        }
    }

    fn too_slow(&self, node: &Node, what: &str) -> RunError {
        RunError::TooSlow {
            node: node.name.clone(),
            what: what.to_owned(),
            seconds: self.common.plan.ready_within.as_secs_f64(),
        }
    }

    /// Runs a program under test, including its wait; `None`: it was not started.
    async fn one(&self, node: &Node) -> Result<Option<ExitLine>, RunError> {
        let mut closing = self.closing.subscribe();
        tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => return Ok(None),
            () = self.turn(node) => {}
        }
        let program = node.command.as_ref().unwrap_or(&Program::Interactive);
        let user = self.common.user.as_ref();
        let (_, exit) = self.start(node, PhaseName::Measurement, program, user)?;
        let exit = told(exit).await;
        self.let_go(node);
        Ok(Some(exit))
    }

    /// Waits until a program may start.
    async fn turn(&self, node: &Node) {
        let mut done = self.done.subscribe();
        let all = |done: &BTreeSet<String>| node.waits_for.iter().all(|other| done.contains(other));
        // The other end exists as long as `self`.
        let _ = done.wait_for(all).await;
        sleep(node.start).await;
    }

    /// Marks this node as one for which others need not wait.
    fn let_go(&self, node: &Node) {
        if let Some(together) = &self.common.together {
            together.done(&node.name);
        }
        self.done.send_modify(|done| {
            done.insert(node.name.clone());
        });
    }

    async fn shell(&self, node: &Node, phase: PhaseName, text: &str) -> Result<ExitLine, RunError> {
        let program = Program::Shell(text.to_owned());
        let (_, exit) = self.start(node, phase, &program, self.common.preparing())?;
        Ok(told(exit).await)
    }

    /// Says how a command of the preparation runs as root.
    fn hint(&self, user: &User) -> String {
        let root = match self.common.together {
            Some(_) => "`emud agent --allow-root`",
            None => "--root=prepare",
        };
        format!(" (it ran as {}; with {root} it runs as root)", user.name)
    }
}

/// Commands of the clean-up in the order in which they run: what was prepared last is undone first.
fn undone(nodes: &[Node]) -> impl Iterator<Item = (&Node, &String)> {
    nodes
        .iter()
        .flat_map(|node| node.clean_up.iter().map(move |text| (node, text)))
        .rev()
}

/// Waits for the exit of a program. Its task only ends early with the whole run.
async fn told(exit: oneshot::Receiver<ExitLine>) -> ExitLine {
    match exit.await {
        Ok(exit) => exit,
        Err(_) => pending().await,
    }
}

/// Returns `None` if the task was aborted.
fn of_task<T>(ended: Result<T, JoinError>) -> Option<T> {
    match ended {
        Ok(done) => Some(done),
        Err(e) if e.is_panic() => std::panic::resume_unwind(e.into_panic()),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::scenario::{Overrides, Scenario};
    use std::path::Path;

    #[test]
    fn what_was_prepared_last_is_undone_first() {
        let text = "name = \"x\"\n[node.a]\nclean-up = [\"a1\", \"a2\"]\n[node.b]\nclean-up = \"b1\"\n\
                    [node.c]\ncommand = \"true\"\nclean-up = [\"c1\", \"c2\"]\n[link.v]\nbetween = [\"a\", \"b\"]\n\
                    [link.w]\nbetween = [\"b\", \"c\"]\n";
        let plan = Scenario::parse(text, "x", Path::new(".")).unwrap();
        let plan = plan.plan(&Overrides::default()).unwrap();
        let order = undone(&plan.nodes).map(|(node, text)| (&*node.name, &**text));
        let wanted = [
            ("c", "c2"),
            ("c", "c1"),
            ("b", "b1"),
            ("a", "a2"),
            ("a", "a1"),
        ];
        assert!(order.eq(wanted), "{:?}", plan.nodes);
    }
}
