// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys, transactions and leases.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Client;
use crate::fleet::FleetError;
use crate::fleet::keys::behind;

/// A lease: keys with it are deleted when it expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease(pub i64);

/// The value of a key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// Bytes of the value.
    pub value: Vec<u8>,
    /// Revision of the store at which it was created.
    pub created: i64,
    /// 0: none.
    pub lease: i64,
}

/// A condition of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compare {
    /// The key does not exist.
    Absent(String),
    /// The key is the one created at this revision.
    Created(String, i64),
    /// The key has this value.
    Value(String, Vec<u8>),
}

/// A step of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Writes a key under a lease.
    Put(String, Vec<u8>, Lease),
    /// Deletes all keys with this beginning.
    Delete(String),
}

/// As the gateway writes it: numbers are text, and zero or empty values are missing.
#[derive(Deserialize)]
pub(super) struct Kv {
    pub key: String,
    #[serde(default)]
    value: String,
    #[serde(default)]
    create_revision: String,
    #[serde(default)]
    lease: String,
}

impl Kv {
    pub fn entry(&self) -> Option<(String, Entry)> {
        let number = |text: &str| text.parse().unwrap_or(0);
        let entry = Entry {
            value: STANDARD.decode(&self.value).ok()?,
            created: number(&self.create_revision),
            lease: number(&self.lease),
        };
        Some((self.name()?, entry))
    }

    pub fn name(&self) -> Option<String> {
        String::from_utf8(STANDARD.decode(&self.key).ok()?).ok()
    }
}

pub(super) fn encode(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

impl Compare {
    fn to_json(&self) -> Value {
        match self {
            Self::Absent(key) => Self::Created(key.clone(), 0).to_json(),
            Self::Created(key, revision) => json!({
                "key": encode(key),
                "target": "CREATE",
                "result": "EQUAL",
                "create_revision": revision.to_string(),
            }),
            Self::Value(key, value) => json!({
                "key": encode(key),
                "target": "VALUE",
                "result": "EQUAL",
                "value": encode(value),
            }),
        }
    }
}

impl Op {
    /// Returns how many bytes its key and value have.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Put(key, value, _) => key.len() + value.len(),
            Self::Delete(prefix) => prefix.len(),
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Put(key, value, lease) => json!({ "request_put": {
                "key": encode(key),
                "value": encode(value),
                "lease": lease.0.to_string(),
            }}),
            Self::Delete(prefix) => json!({ "request_delete_range": {
                "key": encode(prefix),
                "range_end": encode(behind(prefix)),
            }}),
        }
    }
}

impl Client {
    /// Returns all keys with this beginning, and the revision of the store.
    ///
    /// # Errors
    /// As for any request: no member answers, or the user may not read them.
    pub async fn range(&self, prefix: &str) -> Result<(BTreeMap<String, Entry>, i64), FleetError> {
        #[derive(Deserialize)]
        struct Answer {
            header: Header,
            #[serde(default)]
            kvs: Vec<Kv>,
        }
        #[derive(Deserialize)]
        struct Header {
            #[serde(default)]
            revision: String,
        }
        let body = json!({ "key": encode(prefix), "range_end": encode(behind(prefix)) });
        let path = "/v3/kv/range";
        let answer: Answer = from(path, self.call(path, &body).await?)?;
        let entries = answer.kvs.iter().filter_map(Kv::entry).collect();
        Ok((entries, answer.header.revision.parse().unwrap_or(0)))
    }

    /// Returns the value of a key; `None`: there is none.
    ///
    /// # Errors
    /// As [`Client::range`].
    pub async fn get(&self, key: &str) -> Result<Option<Entry>, FleetError> {
        let answer = self
            .call("/v3/kv/range", &json!({ "key": encode(key) }))
            .await?;
        let kvs: Vec<Kv> = match answer.get("kvs") {
            Some(kvs) => from("/v3/kv/range", kvs.clone())?,
            None => vec![],
        };
        Ok(kvs.first().and_then(Kv::entry).map(|(_, entry)| entry))
    }

    /// Carries out all steps if all conditions hold, otherwise none; returns whether they did.
    ///
    /// # Errors
    /// As [`Client::range`]. After [`FleetError::Unreachable`] it may or may not have happened.
    pub async fn txn(&self, when: &[Compare], then: &[Op]) -> Result<bool, FleetError> {
        let answer = self.call(TXN, &transaction(when, then)).await?;
        Ok(succeeded(&answer))
    }

    /// Deletes all keys with one of these beginnings if all conditions hold, and returns how many there were.
    ///
    /// # Errors
    /// As [`Client::txn`].
    pub async fn delete(
        &self,
        when: &[Compare],
        prefixes: impl IntoIterator<Item = String>,
    ) -> Result<u64, FleetError> {
        let then: Vec<Op> = prefixes.into_iter().map(Op::Delete).collect();
        let answer = self.call(TXN, &transaction(when, &then)).await?;
        let done = answer["responses"].as_array().into_iter().flatten();
        let of = |one: &Value| {
            let deleted = one["response_delete_range"]["deleted"].as_str();
            deleted?.parse::<u64>().ok()
        };
        Ok(done.filter_map(of).sum())
    }

    /// Does [`Client::txn`] at one member, for values that are soon out of date.
    ///
    /// # Errors
    /// As [`Client::txn`].
    pub async fn txn_once(&self, when: &[Compare], then: &[Op]) -> Result<bool, FleetError> {
        let answer = self.call_some(1, TXN, &transaction(when, then)).await?;
        Ok(succeeded(&answer))
    }

    /// Writes a key.
    ///
    /// # Errors
    /// As [`Client::range`]; [`FleetError::Rejected`] if the lease has expired.
    pub async fn put(&self, key: &str, value: &[u8], lease: Lease) -> Result<(), FleetError> {
        let op = Op::Put(key.to_owned(), value.to_vec(), lease);
        self.txn(&[], &[op]).await.map(drop)
    }

    /// Creates a lease.
    ///
    /// # Errors
    /// As [`Client::range`].
    pub async fn grant(&self, lasts: Duration) -> Result<Lease, FleetError> {
        let path = "/v3/lease/grant";
        let answer = self.call(path, &json!({ "TTL": lasts.as_secs() })).await?;
        let id = answer["ID"].as_str().and_then(|id| id.parse().ok());
        id.map(Lease).ok_or_else(|| FleetError::Answer {
            attempted: path.to_owned(),
            problem: format!("no ID in {answer}"),
        })
    }

    /// Renews a lease; false: it has expired.
    ///
    /// # Errors
    /// As [`Client::range`].
    pub async fn renew(&self, lease: Lease) -> Result<bool, FleetError> {
        let body = json!({ "ID": lease.0.to_string() });
        let answer = self.call("/v3/lease/keepalive", &body).await?;
        // A lease that does not exist has no TTL.
        let left = answer["TTL"]
            .as_str()
            .and_then(|ttl| ttl.parse::<i64>().ok());
        Ok(left.unwrap_or(0) > 0)
    }

    /// Deletes a lease and its keys.
    ///
    /// # Errors
    /// As [`Client::range`].
    pub async fn revoke(&self, lease: Lease) -> Result<(), FleetError> {
        let body = json!({ "ID": lease.0.to_string() });
        self.call("/v3/lease/revoke", &body).await.map(drop)
    }
}

const TXN: &str = "/v3/kv/txn";

fn transaction(when: &[Compare], then: &[Op]) -> Value {
    json!({
        "compare": when.iter().map(Compare::to_json).collect::<Vec<_>>(),
        "success": then.iter().map(Op::to_json).collect::<Vec<_>>(),
    })
}

fn succeeded(answer: &Value) -> bool {
    answer["succeeded"].as_bool().unwrap_or(false)
}

fn from<T: for<'a> Deserialize<'a>>(path: &str, value: Value) -> Result<T, FleetError> {
    serde_json::from_value(value).map_err(|e| FleetError::Answer {
        attempted: path.to_owned(),
        problem: e.to_string(),
    })
}
