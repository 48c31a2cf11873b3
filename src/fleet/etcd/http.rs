// SPDX-License-Identifier: MIT OR Apache-2.0
//! One HTTP request on one connection.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustix::net::sockopt;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::fleet::FleetError;

/// A member that has not answered after this time is left for another one.
pub(super) const PATIENCE: Duration = Duration::from_millis(1500);
/// Additional time limit of a request for each of its bytes: a log may have to pass 1 Mbit/s.
const A_BYTE: Duration = Duration::from_micros(8);
/// A stream whose other side does not acknowledge for this time is broken. Without it a watch would
/// go on for minutes after the cable was pulled.
const BROKEN: Duration = Duration::from_secs(3);

/// A member of the cluster.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub host: String,
    pub port: u16,
    pub secure: bool,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

impl Endpoint {
    pub fn parse(url: &str) -> Result<Self, FleetError> {
        let bad = |why: &str| {
            let help = "write http://HOST:2379 or https://HOST:2379, several with commas";
            FleetError::Url(format!("{url}: {why}; {help}"))
        };
        let uri: Uri = url.parse().map_err(|_| bad("this is no URL"))?;
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(bad("the scheme is missing")),
        };
        if !matches!(uri.path(), "" | "/") {
            return Err(bad("a member has no path"));
        }
        let host = uri.host().ok_or_else(|| bad("the host is missing"))?;
        Ok(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(2379),
            secure,
        })
    }
}

/// Sends a request and reads the whole answer.
pub(crate) async fn ask(
    member: &Endpoint,
    tls: Option<Arc<ClientConfig>>,
    path: &str,
    body: Bytes,
    token: Option<&str>,
) -> Result<Value, FleetError> {
    let sent = PATIENCE + A_BYTE * u32::try_from(body.len()).unwrap_or(u32::MAX);
    let sending = send(member, tls, post(path, body, token));
    let late = |_| FleetError::Unreachable(format!("{member} did not answer within {sent:?}"));
    let response = timeout(sent, sending).await.map_err(late)??;
    let status = response.status();
    checked(member, path, status, &whole(member, response).await?)
}

/// Returns a page of a member; `None`: it has none.
pub(crate) async fn page(
    member: &Endpoint,
    tls: Option<Arc<ClientConfig>>,
    path: &str,
) -> Result<Option<String>, FleetError> {
    let response = send(member, tls, Request::get(path).body(Full::default())).await?;
    let there = response.status().is_success();
    let bytes = whole(member, response).await?;
    Ok(there.then(|| String::from_utf8_lossy(&bytes).into_owned()))
}

async fn whole(member: &Endpoint, response: Response<Incoming>) -> Result<Vec<u8>, FleetError> {
    let mut body = response.into_body();
    let mut bytes = vec![];
    let late = |_| FleetError::Unreachable(format!("{member} did not go on for {PATIENCE:?}"));
    let broke = |e: hyper::Error| FleetError::Unreachable(format!("{member}: {e}"));
    while let Some(frame) = timeout(PATIENCE, body.frame()).await.map_err(late)? {
        if let Ok(data) = frame.map_err(broke)?.into_data() {
            bytes.extend_from_slice(&data);
        }
    }
    Ok(bytes)
}

fn post(path: &str, body: Bytes, token: Option<&str>) -> hyper::http::Result<Request<Full<Bytes>>> {
    let mut request = Request::post(path).header(CONTENT_TYPE, "application/json");
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, token);
    }
    request.body(Full::from(body))
}

/// The lines of a stream.
pub(crate) struct Lines {
    body: Incoming,
    read: Vec<u8>,
    member: Endpoint,
    path: String,
}

/// Sends a request whose answer is a stream of lines.
pub(crate) async fn open(
    member: &Endpoint,
    tls: Option<Arc<ClientConfig>>,
    path: &str,
    body: &Value,
    token: Option<&str>,
) -> Result<Lines, FleetError> {
    let mut request = post(path, body.to_string().into(), token);
    if let Ok(request) = &mut request {
        // A member without a leader ends the stream.
        let leader = HeaderValue::from_static("true");
        request
            .headers_mut()
            .insert("grpc-metadata-hasleader", leader);
    }
    let response = send(member, tls, request).await?;
    let status = response.status();
    let mut lines = Lines {
        body: response.into_body(),
        read: Vec::new(),
        member: member.clone(),
        path: path.to_owned(),
    };
    match status.is_success() {
        true => Ok(lines),
        false => {
            let line = lines.line().await?.unwrap_or_default();
            Err(checked(member, path, status, &line)
                .err()
                .unwrap_or_else(|| FleetError::Unreachable(format!("{member} closed {path}"))))
        }
    }
}

impl Lines {
    /// Returns the next answer; `None`: the member has ended the stream.
    pub async fn next(&mut self) -> Result<Option<Value>, FleetError> {
        match self.line().await? {
            None => Ok(None),
            Some(line) => checked(&self.member, &self.path, StatusCode::OK, &line).map(Some),
        }
    }

    async fn line(&mut self) -> Result<Option<Vec<u8>>, FleetError> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let rest = self.read.split_off(end + 1);
                return Ok(Some(std::mem::replace(&mut self.read, rest)));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.read.extend(frame.into_data().unwrap_or_default()),
                Some(Err(e)) => {
                    return Err(FleetError::Unreachable(format!("{}: {e}", self.member)));
                }
                None if self.read.is_empty() => return Ok(None),
                None => return Ok(Some(std::mem::take(&mut self.read))),
            }
        }
    }
}

async fn send(
    member: &Endpoint,
    tls: Option<Arc<ClientConfig>>,
    request: hyper::http::Result<Request<Full<Bytes>>>,
) -> Result<Response<Incoming>, FleetError> {
    let unreachable = |e: &dyn fmt::Display| FleetError::Unreachable(format!("{member}: {e}"));
    let mut request = request.map_err(|e| unreachable(&e))?;
    let name = HeaderValue::try_from(format!("{}:{}", member.host, member.port));
    let name = name.map_err(|e| unreachable(&e))?;
    request.headers_mut().insert(HOST, name);
    let address = (member.host.as_str(), member.port);
    let stream = TcpStream::connect(address)
        .await
        .map_err(|e| unreachable(&e))?;
    impatient(&stream).map_err(|e| unreachable(&e))?;
    match tls.filter(|_| member.secure) {
        None => exchange(stream, request).await.map_err(|e| unreachable(&e)),
        Some(config) => {
            let name = ServerName::try_from(member.host.clone());
            let name = name.map_err(|e| FleetError::Url(format!("{member}: {e}")))?;
            let stream = TlsConnector::from(config).connect(name, stream).await;
            let stream = stream.map_err(|e| unreachable(&e))?;
            exchange(stream, request).await.map_err(|e| unreachable(&e))
        }
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, hyper::Error> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the answer, or when the reader is dropped.
    tokio::spawn(connection);
    sender.send_request(request).await
}

fn impatient(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(1))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(1))?;
    sockopt::set_tcp_keepcnt(stream, 3)?;
    let ms = u32::try_from(BROKEN.as_millis()).unwrap_or(u32::MAX);
    Ok(sockopt::set_tcp_user_timeout(stream, ms)?)
}

/// gRPC's codes for a missing permission.
const DENIED: [i64; 2] = [7, 16];
/// Code of gRPC from a member without a leader, or that is about to end.
const NOT_NOW: i64 = 14;

/// Returns whether etcd no longer knows a token: it has expired, or the member was restarted, or a user was changed.
pub(super) fn is_stale(message: &str) -> bool {
    let texts = ["auth token", "auth store"];
    texts.iter().any(|text| message.contains(text))
}

fn checked(
    member: &Endpoint,
    path: &str,
    status: StatusCode,
    bytes: &[u8],
) -> Result<Value, FleetError> {
    let attempted = path.to_owned();
    let value: Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(_) if !status.is_success() => {
            return Err(FleetError::Unreachable(format!("{member}: {status}")));
        }
        Err(e) => {
            let problem = e.to_string();
            return Err(FleetError::Answer { attempted, problem });
        }
    };
    let (value, error) = match (value.get("result"), value.get("error")) {
        (Some(result), _) => (result.clone(), None),
        (None, Some(error)) => (Value::Null, Some(error.clone())),
        (None, None) => (value, None),
    };
    let Some(error) = error else {
        return Ok(value);
    };
    let whole: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let code = [&error["grpc_code"], &error["code"], &whole["code"]];
    let code = code.iter().find_map(|code| code.as_i64()).unwrap_or(0);
    let message = error.as_str().or(error["message"].as_str());
    let message = message.unwrap_or("no reason").to_owned();
    // etcd gives these the code of an invalid argument, an invalid token in some versions.
    let denied = ["user name is empty", "authentication failed"];
    let denied = DENIED.contains(&code)
        || is_stale(&message)
        || denied.iter().any(|text| message.contains(text));
    Err(match code {
        NOT_NOW => FleetError::Unreachable(format!("{member}: {message}")),
        _ if denied => FleetError::Denied { attempted, message },
        _ if message.contains("no leader") || message.contains("timed out") => {
            FleetError::Unreachable(format!("{member}: {message}"))
        }
        _ => FleetError::Rejected { attempted, message },
    })
}
