// SPDX-License-Identifier: MIT OR Apache-2.0
//! The metrics of a run, in the OpenMetrics text format over HTTP.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use emud_monitor::event::Resource;
use emud_monitor::log::PerResource;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{sleep, timeout};

use super::{Measures, Request};

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Maximum number of simultaneous scrapers.
const MAX_CONNECTIONS: usize = 32;
/// Time limits for a request's header, and for a whole connection.
const HEADER: Duration = Duration::from_secs(5);
const CONNECTION: Duration = Duration::from_secs(300);
/// Pause before accept is tried again after a failure: no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

type Labels = Vec<(&'static str, String)>;

/// Serves until it is dropped.
pub async fn serve(listener: TcpListener, requests: mpsc::Sender<Request>) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let requests = requests.clone();
        tokio::spawn(async move {
            // A broken connection only affects its client.
            let _ = timeout(CONNECTION, converse(stream, requests)).await;
            drop(permit);
        });
    }
}

async fn converse(stream: TcpStream, requests: mpsc::Sender<Request>) -> Result<(), hyper::Error> {
    let answer = |request: hyper::Request<Incoming>| {
        let requests = requests.clone();
        async move {
            let (method, path) = (request.method(), request.uri().path());
            Ok::<_, Infallible>(respond(method, path, &requests).await)
        }
    };
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER)
        .serve_connection(TokioIo::new(stream), service_fn(answer))
        .await
}

async fn respond(
    method: &Method,
    path: &str,
    requests: &mpsc::Sender<Request>,
) -> Response<Full<Bytes>> {
    if path != "/metrics" && path != "/" {
        return plain(StatusCode::NOT_FOUND, "the metrics are at /metrics\n");
    }
    if method != Method::GET && method != Method::HEAD {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
        let allowed = hyper::header::HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(ALLOW, allowed);
        return response;
    }
    match measure(requests).await {
        Ok(text) => with_type(StatusCode::OK, OPENMETRICS, text),
        Err(error) => plain(StatusCode::SERVICE_UNAVAILABLE, &format!("{error}\n")),
    }
}

fn plain(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    with_type(status, "text/plain; charset=utf-8", text.to_owned())
}

fn with_type(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

async fn measure(requests: &mpsc::Sender<Request>) -> Result<String, String> {
    let ending = || "the monitor is ending".to_owned();
    let (answer, answered) = oneshot::channel();
    let sent = requests.send(Request::Measure(answer)).await;
    sent.map_err(|_| ending())?;
    let measures = answered.await.map_err(|_| ending())??;
    exposition(&measures).map_err(|e| e.to_string())
}

/// Returns the metrics as text.
fn exposition(measures: &Measures) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("emud");
    let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    registry.register("build", "Version of the running emud", version);
    resources(&mut registry, measures);
    programs(&mut registry, measures);
    let lost = Counter::<u64>::default();
    lost.inc_by(measures.ring_full);
    let help = "Records of the kernel's programs that found the ring buffer full";
    registry.register("records_lost", help, lost);
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

fn resources(registry: &mut Registry, measures: &Measures) {
    let help = "Alarms raised, lines in the log";
    registry.register("alarms", help, counters(&measures.alarms));
    let help = "Alarms beyond the limit, only counted";
    registry.register("alarms_suppressed", help, counters(&measures.suppressed));
    let going_on = Family::<Labels, Gauge>::default();
    for (resource, episodes) in &measures.in_contention {
        let gauge = going_on.get_or_create(&vec![("resource", name(resource))]);
        gauge.set(episodes.cast_signed());
    }
    let help = "Open contention episodes, of those with an alarm line";
    registry.register("in_contention", help, going_on);
    let watched = Family::<Labels, Gauge>::default();
    for (resource, state) in &measures.watched {
        for each in ["yes", "no", "unknown"] {
            let labels = vec![("resource", name(resource)), ("state", each.to_owned())];
            watched
                .get_or_create(&labels)
                .set(i64::from(word(state) == each));
        }
    }
    let help = "Whether a resource is watched: 1 for the current state; \
                unknown is configured, but has no supported hook";
    registry.register("watched", help, watched);
}

fn counters(of: &PerResource<u64>) -> Family<Labels, Counter> {
    let counters = Family::<Labels, Counter>::default();
    for (resource, n) in of {
        let labels = vec![("resource", name(resource))];
        counters.get_or_create(&labels).inc_by(*n);
    }
    counters
}

fn programs(registry: &mut Registry, measures: &Measures) {
    let events = Family::<Labels, Counter>::default();
    let run_time = Family::<Labels, Counter<f64, AtomicU64>>::default();
    for cost in &measures.costs {
        let labels = vec![
            ("program", cost.program.clone()),
            ("hook", cost.hook.clone()),
        ];
        events.get_or_create(&labels).inc_by(cost.events);
        let seconds = cost.run_time_ns as f64 / 1e9;
        run_time.get_or_create(&labels).inc_by(seconds);
    }
    let help = "Runs of a program in the kernel";
    registry.register("bpf_events", help, events);
    let help = "Time that a program in the kernel took";
    registry.register_with_unit("bpf_run_time", help, Unit::Seconds, run_time);
}

fn name(resource: &Resource) -> String {
    resource.name().into()
}

/// Returns the name in the log.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}
