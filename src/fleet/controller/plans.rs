// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run writes before its hosts build anything.

use tokio::time::Instant;

use super::steps::Controller;
use crate::fleet::etcd::{Compare, Op};
use crate::fleet::protocol::{Revision, digest};
use crate::fleet::{FleetError, LeaseEnd};

/// etcd's default limit of a request is 1.5 MiB, and base64 adds a third.
const MAX_BYTES: usize = 1024 * 1024;
/// Its default limit of steps in a transaction is 128.
const MAX_STEPS: usize = 100;

impl Controller<'_> {
    /// Claims the fleet, then writes the plans, and last the run: agents begin with that.
    pub(super) async fn write_plans(&mut self) -> Result<(), FleetError> {
        let mut puts = vec![];
        for (host, plan) in &self.divided.plans {
            let text = serde_json::to_vec(plan);
            let text = text.map_err(|e| FleetError::Plan(format!("the plan of {host}: {e}")))?;
            if text.len() > MAX_BYTES {
                return Err(FleetError::Plan(format!(
                    "the plan of {host} has {} bytes, a key of etcd takes {MAX_BYTES}: use shorter \
                     traces, or more hosts",
                    text.len()
                )));
            }
            self.digests.insert(host.clone(), digest(&text));
            puts.push(Op::Put(self.keys.plan(host), text, self.lease));
        }
        let id = serde_json::to_vec(&self.digests).unwrap_or_default();
        self.revision.id = format!("{}-{}", &digest(&id)[..8], self.lease.0 & 0xffff_ffff);
        self.claim().await?;
        let mine = [self.is_mine()];
        for part in batches(&puts) {
            let written = self.client.txn(&mine, part).await;
            if !written.map_err(|e| self.too_many(e))? {
                // Another run has the claim.
                return Err(FleetError::LeaseLost(LeaseEnd::Revoked));
            }
        }
        let mut when = self.agents_are_there();
        when.extend(mine);
        let put = Op::Put(self.keys.revision(), self.own(), self.lease);
        self.begun = Instant::now();
        match self.client.txn(&when, &[put]).await {
            Ok(true) => {}
            Ok(false) => {
                let host = self.left(&when).await;
                let why = format!("{host} left before the run began");
                return Err(FleetError::Absent(why));
            }
            Err(e) => return Err(self.too_many(e)),
        }
        let bytes: usize = puts.iter().map(Op::bytes).sum();
        (self.request.note)(&format!(
            "run {}: {} hosts, {bytes} bytes of plans",
            self.revision.id,
            self.divided.plans.len()
        ));
        Ok(())
    }

    /// Excludes other runs, and removes what an earlier one has left.
    async fn claim(&self) -> Result<(), FleetError> {
        let key = self.keys.claim();
        let steps = [
            Op::Delete(self.keys.hosts()),
            Op::Delete(self.keys.done_nodes()),
            Op::Delete(self.keys.plans()),
            Op::Put(key.clone(), self.own(), self.lease),
        ];
        if self
            .client
            .txn(&[Compare::Absent(key.clone())], &steps)
            .await?
        {
            return Ok(());
        }
        let other = self.client.get(&key).await?;
        if other
            .as_ref()
            .is_some_and(|entry| entry.lease == self.lease.0)
        {
            // The answer was lost, and the request repeated at the next member.
            return Ok(());
        }
        let other: Option<Revision> =
            other.and_then(|entry| serde_json::from_slice(&entry.value).ok());
        let name = other.map_or_else(String::new, |other| format!(" of {}", other.name));
        Err(FleetError::Busy(format!(
            "another run{name} is active (`emud fleet status`)"
        )))
    }

    pub(super) fn own(&self) -> Vec<u8> {
        serde_json::to_vec(&self.revision).unwrap_or_default()
    }

    /// Returns the conditions that the agents that take part are still the same ones.
    fn agents_are_there(&self) -> Vec<Compare> {
        let of = |host: &String| {
            let created = self.divided.created.get(host).copied().unwrap_or(0);
            Compare::Created(self.keys.agent(host), created)
        };
        self.divided.plans.keys().map(of).collect()
    }

    /// Adds the remedy to an error of a transaction with too many conditions: run and start have one for each host.
    pub(super) fn too_many(&self, error: FleetError) -> FleetError {
        match error {
            FleetError::Rejected { message, .. } if message.contains("too many operations") => {
                FleetError::Plan(format!(
                    "etcd takes fewer than {} conditions in a transaction: start its members with \
                     --max-txn-ops {}",
                    self.divided.plans.len() + 1,
                    (self.divided.plans.len() + 1).next_power_of_two()
                ))
            }
            other => other,
        }
    }
}

/// Divides steps into transactions that etcd takes.
fn batches(mut steps: &[Op]) -> Vec<&[Op]> {
    let mut out = vec![];
    while !steps.is_empty() {
        let mut bytes = 0;
        let fits = |op: &&Op| {
            bytes += op.bytes();
            bytes <= MAX_BYTES
        };
        let count = steps.iter().take(MAX_STEPS).take_while(fits).count();
        let (batch, rest) = steps.split_at(count.max(1));
        out.push(batch);
        steps = rest;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::etcd::Lease;

    #[test]
    fn batches_are_as_large_as_etcd_takes() {
        let put = |bytes| Op::Put(String::new(), vec![0; bytes], Lease(1));
        let sizes = |all: &[Op]| batches(all).iter().map(|b| b.len()).collect::<Vec<_>>();
        assert!(batches(&[]).is_empty());
        assert_eq!(sizes(&vec![put(1); 250]), [100, 100, 50]);
        let half = MAX_BYTES / 2;
        assert_eq!(sizes(&[put(half), put(half), put(1)]), [2, 1]);
        assert_eq!(sizes(&[put(MAX_BYTES), put(1), put(half)]), [1, 2]);
    }
}
