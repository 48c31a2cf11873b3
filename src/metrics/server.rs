// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics over HTTP: `/metrics` and `/healthz`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::registry::Registry;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::text::{accepted, exposition};

/// Maximum number of simultaneous scrapers.
const MAX_CONNECTIONS: usize = 32;
/// Time limits for a request's header, and for a whole connection.
const HEADER: Duration = Duration::from_secs(5);
const CONNECTION: Duration = Duration::from_secs(300);
/// Pause before accept is tried again after a failure: no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

/// The source of the metrics that a server sends.
pub trait Source: Clone + Send + Sync + 'static {
    /// Measures now. The error is a sentence for the client.
    fn measure(&self) -> impl Future<Output = Result<Registry, String>> + Send;

    /// Returns whether the next measurement can succeed. The error is a sentence for the client.
    fn healthy(&self) -> impl Future<Output = Result<(), String>> + Send;
}

/// Serves until it is dropped.
pub async fn serve(listener: TcpListener, source: impl Source) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let source = source.clone();
        tokio::spawn(async move {
            // A broken connection only affects its client.
            let _ = timeout(CONNECTION, converse(stream, &source)).await;
            drop(permit);
        });
    }
}

async fn converse(stream: TcpStream, source: &impl Source) -> Result<(), hyper::Error> {
    let answer = |request: Request<Incoming>| async move {
        Ok::<_, Infallible>(respond(&request, source).await)
    };
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER)
        .serve_connection(TokioIo::new(stream), service_fn(answer))
        .await
}

async fn respond(request: &Request<Incoming>, source: &impl Source) -> Response<Full<Bytes>> {
    let path = request.uri().path();
    if !["/metrics", "/", "/healthz"].contains(&path) {
        let hint = "the metrics are at /metrics, the state of the server at /healthz\n";
        return plain(StatusCode::NOT_FOUND, hint);
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
        let allowed = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(ALLOW, allowed);
        return response;
    }
    if path == "/healthz" {
        return match source.healthy().await {
            Ok(()) => plain(StatusCode::OK, "ok\n"),
            Err(why) => plain(StatusCode::SERVICE_UNAVAILABLE, &format!("{why}\n")),
        };
    }
    let accept = (request.headers().get(ACCEPT)).and_then(|header| header.to_str().ok());
    let format = accepted(accept.unwrap_or_default());
    let measured = source.measure().await;
    let text =
        measured.and_then(|registry| exposition(&registry, format).map_err(|e| e.to_string()));
    match text {
        Ok(text) => with_type(StatusCode::OK, format.media_type(), text),
        Err(why) => plain(StatusCode::SERVICE_UNAVAILABLE, &format!("{why}\n")),
    }
}

fn plain(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    with_type(status, "text/plain; charset=utf-8", text.to_owned())
}

fn with_type(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// What cannot be measured.
    #[derive(Clone)]
    struct Broken;

    impl Source for Broken {
        async fn measure(&self) -> Result<Registry, String> {
            Err("no links".to_owned())
        }

        async fn healthy(&self) -> Result<(), String> {
            Err("no links".to_owned())
        }
    }

    async fn answer(path: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(serve(listener, Broken));
        let mut client = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        server.abort();
        answer
    }

    #[tokio::test]
    async fn a_failed_measurement_is_a_failure_of_the_service() {
        for path in ["/metrics", "/healthz"] {
            let answer = answer(path).await;
            let head = answer.starts_with("HTTP/1.0 503 ");
            assert!(head && answer.ends_with("\r\n\r\nno links\n"), "{answer}");
        }
    }
}
