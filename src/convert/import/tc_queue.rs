// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the queues of tc that emud has.

use super::tc_aqm::{Aqm, packets};
use super::tc_made::{Made, begins};
use super::tc_red::Red;
use crate::profile::DEFAULT_QUEUE_PACKETS;
use crate::text::Mistake;

/// Limits of a queue, and its manager.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Queue {
    pub packets: Option<u32>,
    pub bytes: Option<u32>,
    pub red: Option<Red>,
    pub aqm: Option<Aqm>,
}

/// Returns the queue of a qdisc; `None`: its kind is unknown.
pub(super) fn queue(made: &mut Made, warnings: &mut Vec<String>) -> Result<Option<Queue>, Mistake> {
    let mut queue = Queue::default();
    match made.kind.value {
        "pfifo" | "pfifo_head_drop" => {
            // The default is left out.
            queue.packets = limit(made)?.filter(|limit| *limit != DEFAULT_QUEUE_PACKETS);
        }
        "bfifo" => queue.bytes = limit(made)?,
        "red" => queue.red = Some(Red::read(made, warnings)?),
        _ => {
            let Some(aqm) = Aqm::read(made, warnings)? else {
                return Ok(None);
            };
            queue.packets = aqm.limit.filter(|limit| *limit != DEFAULT_QUEUE_PACKETS);
            queue.aqm = Some(aqm);
        }
    }
    Ok(Some(queue))
}

fn limit(made: &mut Made) -> Result<Option<u32>, Mistake> {
    let words = &mut made.options;
    while let Some(word) = words.next() {
        if begins(word.value, "limit") {
            return Ok(Some(packets(&words.argument("limit", "100")?)?));
        }
    }
    Ok(None)
}
