// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client of etcd's JSON gateway (`/v3/...`, etcd 3.4 and later): a few requests with few crates,
//! instead of gRPC.

mod http;
mod kv;
mod mirror;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyper::body::Bytes;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};

use super::FleetError;
use http::{Endpoint, PATIENCE};

pub use kv::{Compare, Entry, Lease, Op};
pub use mirror::{Snapshot, mirror};

/// How long a cluster may be without a leader. etcd waits 1 to 2 s for the old one by default, and
/// again if an election has no result.
const ELECTION: Duration = Duration::from_secs(4);
/// Pause before all members are requested again.
const AGAIN: Duration = Duration::from_millis(100);

/// How etcd is reached.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// `http://HOST:PORT` or `https://HOST:PORT` of each member.
    pub urls: Vec<String>,
    /// File of the certificates that may sign those of members.
    pub ca: Option<PathBuf>,
    /// File of the own certificate.
    pub cert: Option<PathBuf>,
    /// File of its key.
    pub key: Option<PathBuf>,
    /// Name and password of a user of etcd.
    pub user: Option<(String, String)>,
}

/// A connection to a cluster. Clones share it.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    members: Vec<Endpoint>,
    tls: Option<Arc<ClientConfig>>,
    user: Option<(String, String)>,
    token: Mutex<Option<String>>,
    /// The member that answered last.
    current: AtomicUsize,
}

impl Client {
    /// Returns a client; nothing is connected yet.
    ///
    /// # Errors
    /// [`FleetError::Url`], [`FleetError::Tls`].
    pub fn new(access: &Access) -> Result<Self, FleetError> {
        let members = access.urls.iter().map(|url| Endpoint::parse(url));
        let members = members.collect::<Result<Vec<_>, _>>()?;
        if members.is_empty() {
            return Err(FleetError::Url("needs at least one URL".into()));
        }
        let secure = members.iter().any(|member| member.secure);
        Ok(Self(Arc::new(Inner {
            tls: secure.then(|| tls(access)).transpose()?.map(Arc::new),
            members,
            user: access.user.clone(),
            token: Mutex::default(),
            current: AtomicUsize::new(0),
        })))
    }

    /// Returns host and port of the member that answered last.
    pub fn member(&self) -> (String, u16) {
        let member = &self.0.members[self.current()];
        (member.host.clone(), member.port)
    }

    /// Returns the number of the member that answered last.
    pub(crate) fn current(&self) -> usize {
        self.0.current.load(Ordering::Relaxed) % self.0.members.len()
    }

    /// Sends a request to a member; if that does not answer, to the others, one after the other, and
    /// again while they may elect a leader.
    pub(crate) async fn call(&self, path: &str, body: &Value) -> Result<Value, FleetError> {
        let all = self.0.members.len();
        let until = Instant::now() + ELECTION;
        loop {
            match self.call_some(all, path, body).await {
                Err(FleetError::Unreachable(_)) if all > 1 && Instant::now() < until => {
                    sleep(AGAIN).await;
                }
                done => return done,
            }
        }
    }

    /// Does [`Self::call`] at this many members, once each.
    async fn call_some(
        &self,
        members: usize,
        path: &str,
        body: &Value,
    ) -> Result<Value, FleetError> {
        let token = self.token().await?;
        match self.any(members, path, body, token.as_deref()).await {
            Err(FleetError::Denied { message, .. })
                if self.0.user.is_some() && http::is_stale(&message) =>
            {
                *self.0.token.lock().await = None;
                let token = self.token().await?;
                self.any(members, path, body, token.as_deref()).await
            }
            done => done,
        }
    }

    async fn any(
        &self,
        members: usize,
        path: &str,
        body: &Value,
        token: Option<&str>,
    ) -> Result<Value, FleetError> {
        let mut last = None;
        let body = Bytes::from(body.to_string());
        for _ in 0..members {
            let n = self.0.current.load(Ordering::Relaxed);
            let member = &self.0.members[n % self.0.members.len()];
            match http::ask(member, self.0.tls.clone(), path, body.clone(), token).await {
                Err(e @ (FleetError::Rejected { .. } | FleetError::Denied { .. })) => {
                    return Err(e);
                }
                Err(e) => last = Some(e),
                answer => return answer,
            }
            self.0.current.store(n.wrapping_add(1), Ordering::Relaxed);
        }
        Err(last.unwrap_or_else(|| FleetError::Unreachable("no member".into())))
    }

    /// Opens a stream of answers.
    pub(crate) async fn stream(&self, path: &str, body: &Value) -> Result<http::Lines, FleetError> {
        let token = self.token().await?;
        let n = self.0.current.load(Ordering::Relaxed);
        let member = &self.0.members[n % self.0.members.len()];
        let opened = http::open(member, self.0.tls.clone(), path, body, token.as_deref());
        let opened = match timeout(PATIENCE, opened).await {
            Ok(opened) => opened,
            Err(_) => Err(FleetError::Unreachable(format!("{member} did not answer"))),
        };
        if opened.is_err() {
            self.0.current.store(n.wrapping_add(1), Ordering::Relaxed);
        }
        opened
    }

    /// Returns the sum of a metric over all members; `None`: a member does not say it.
    pub(crate) async fn metric(&self, name: &str) -> Option<f64> {
        let mut sum = 0.0;
        for member in &self.0.members {
            let page = http::page(member, self.0.tls.clone(), "/metrics");
            let text = timeout(PATIENCE, page).await.ok()?.ok()??;
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            sum += line.trim().parse::<f64>().ok()?;
        }
        Some(sum)
    }

    async fn token(&self) -> Result<Option<String>, FleetError> {
        let Some((name, password)) = &self.0.user else {
            return Ok(None);
        };
        let mut token = self.0.token.lock().await;
        if token.is_none() {
            let body = json!({ "name": name, "password": password });
            let all = self.0.members.len();
            let answer = self.any(all, "/v3/auth/authenticate", &body, None).await?;
            *token = answer["token"].as_str().map(str::to_owned);
        }
        Ok(token.clone())
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Client").field(&self.0.members).finish()
    }
}

fn tls(access: &Access) -> Result<ClientConfig, FleetError> {
    let failed = |what: &str, path: &Path, error: String| {
        FleetError::Tls(format!("{what} {}: {error}", path.display()))
    };
    let certificates = |what: &str, path: &Path| {
        let read =
            CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        read.map_err(|e| failed(what, path, e.to_string()))
    };
    let mut roots = RootCertStore::empty();
    let Some(ca) = &access.ca else {
        return Err(FleetError::Tls(
            "https needs --ca FILE, the certificate that signed those of etcd".into(),
        ));
    };
    for certificate in certificates("--ca", ca)? {
        let added = roots.add(certificate);
        added.map_err(|e| failed("--ca", ca, e.to_string()))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| FleetError::Tls(e.to_string()))?
        .with_root_certificates(roots);
    match (&access.cert, &access.key) {
        (None, None) => Ok(builder.with_no_client_auth()),
        (Some(cert), Some(key)) => {
            let chain = certificates("--cert", cert)?;
            let read = PrivateKeyDer::from_pem_file(key);
            let read = read.map_err(|e| failed("--key", key, e.to_string()))?;
            let built = builder.with_client_auth_cert(chain, read);
            built.map_err(|e| failed("--cert", cert, e.to_string()))
        }
        _ => Err(FleetError::Tls("--cert and --key belong together".into())),
    }
}
