// SPDX-License-Identifier: MIT OR Apache-2.0

use std::io;
use std::net::TcpListener;

use emud::host::signals::Signals;
use emud::host::single_threaded;
use emud::metrics::{Format, Sampling, Source, checked_once, exposition, links, registry, serve};
use emud::monitor::session::ObserveError;
use emud::text::to_stderr;
use prometheus_client::registry::Registry;

use super::Failure;
use super::failure::EX_USAGE;

/// Print or serve metrics of every emulated link of this host
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud metrics | grep lost                 once, in the text format of Prometheus
  emud metrics --listen 127.0.0.1:9109     http://127.0.0.1:9109/metrics and /healthz

The links of all network namespaces that have a name or a process. docs/metrics.md has the list.")]
pub struct Args {
    /// Serve over HTTP at this address until a signal, in the format that the client accepts
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,

    /// Print OpenMetrics instead of the text format of Prometheus
    #[arg(long, conflicts_with = "listen")]
    openmetrics: bool,
}

/// The links alone.
#[derive(Clone)]
struct Links(Sampling);

impl Source for Links {
    async fn measure(&self) -> Result<Registry, String> {
        let mut registry = registry();
        links::register(&mut registry, self.0.snapshot().await?);
        Ok(registry)
    }

    async fn healthy(&self) -> Result<(), String> {
        self.0.healthy()
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let Some(address) = &args.listen else {
        let mut registry = registry();
        links::register(&mut registry, checked_once()?);
        let format = match args.openmetrics {
            true => Format::OpenMetrics,
            false => Format::Prometheus,
        };
        let text = exposition(&registry, format).map_err(|e| Failure::os(e.to_string()))?;
        return super::out(&text);
    };
    let listener = listen("--listen", address)?;
    // Who may not see the links learns it now, and not at the first scrape.
    emud::datapath::survey::Survey::new().snapshot()?;
    let runtime = single_threaded()?;
    runtime.block_on(async {
        let mut signals = Signals::new()?;
        listener.set_nonblocking(true)?;
        let at = listener.local_addr()?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let links = Links(Sampling::start()?);
        to_stderr(format_args!("emud: metrics at http://{at}/metrics"));
        tokio::select! {
            () = serve(listener, links) => {}
            _ = signals.any() => {}
        }
        Ok(())
    })
}

/// Listens at the address that an option gives.
pub fn listen(option: &str, address: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => {
            let message = format!("{option} {address}: {error}, as in 127.0.0.1:9109");
            Failure::new(EX_USAGE, message)
        }
        _ => {
            let at = address.to_owned();
            ObserveError::Listen { at, error }.into()
        }
    })
}
