// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--netns` and `--container`: where a verb acts.

use std::fmt::Write;
use std::fs::File;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;

use emud::container::{self, ContainerError};
use emud::datapath::attachment;
use emud::netlink::{self, Netlink};
use emud::profile::Profile;
use emud::profile::hosts::{addresses, resolvers_in};

use super::Failure;
use super::failure::{EX_NOHOST, EX_USAGE};

/// Where a verb acts.
#[derive(Debug, Default)]
pub struct CliTarget {
    /// The network namespace in which emud was started, if it has entered another one.
    host: Option<File>,
    /// The name of the container.
    container: Option<String>,
    /// Its root folder.
    root: PathBuf,
    /// The interface after the colon.
    interface: Option<String>,
}

impl CliTarget {
    /// Moves this process, which has one thread, into the network namespace.
    pub fn enter(netns: Option<&str>, container: Option<&str>) -> Result<Self, Failure> {
        match (netns, container) {
            (Some(_), Some(_)) => Err(usage("use either --netns or --container")),
            (Some(netns), None) => {
                let host = Some(own()?);
                netlink::enter(netns)?;
                Ok(Self {
                    host,
                    ..Self::default()
                })
            }
            (None, Some(container)) => Self::enter_container(container),
            (None, None) => Ok(Self::default()),
        }
    }

    fn enter_container(given: &str) -> Result<Self, Failure> {
        let (name, interface) = match given.split_once(':') {
            Some((_, "")) => return Err(usage("--container: the interface's name is empty")),
            Some((name, interface)) => (name, Some(interface.to_owned())),
            None => (given, None),
        };
        let (found, network) = container::find(name)?;
        let (host, own) = (netlink::identity()?, own()?);
        netlink::enter(&format!("/proc/self/fd/{}", network.as_raw_fd()))?;
        let entered = netlink::identity()?;
        // emud itself may be in another one (`ip netns exec`).
        let first = netlink::identity_of("/proc/1/ns/net");
        if entered == host || first.is_ok_and(|first| entered == first) {
            return Err(ContainerError::HostNetwork { name: found.name }.into());
        }
        Ok(Self {
            host: Some(own),
            container: Some(found.name),
            root: format!("/proc/{}/root", found.pid).into(),
            interface,
        })
    }

    /// Resolves the hosts of a profile in the network in which emud was started: the resolver of a
    /// container may not be reached from there, nor be its own.
    pub fn resolve(&self, profile: &mut Profile) -> Result<(), Failure> {
        if !profile.names_hosts() {
            return Ok(());
        }
        let mut resolve = || profile.resolve(addresses);
        let resolved = match &self.host {
            Some(host) => netlink::inside(host.as_fd(), resolve)?,
            None => resolve(),
        };
        resolved.map_err(|e| Failure::new(EX_NOHOST, e.to_string()))
    }

    /// Returns the resolvers of the container; `None`: none was given.
    pub fn resolvers(&self) -> Option<Vec<IpAddr>> {
        self.container.as_ref().map(|_| resolvers_in(&self.root))
    }

    /// Returns whether a container was given.
    pub fn is_container(&self) -> bool {
        self.container.is_some()
    }

    /// Returns the interface that is given here or as an argument of the verb, if any.
    pub fn given(&self, argument: Option<&str>) -> Result<Option<String>, Failure> {
        match (argument, &self.interface) {
            (Some(""), _) => Err(usage("the interface's name is empty")),
            (Some(argument), Some(interface)) if argument != interface => Err(usage(format!(
                "two interfaces, \"{argument}\" and \"{interface}\" of --container: use one"
            ))),
            (argument, interface) => Ok(argument.map(str::to_owned).or(interface.clone())),
        }
    }

    /// As [`Self::given`]; if none is given, the only interface of the container.
    pub fn interface(&self, argument: Option<&str>) -> Result<String, Failure> {
        if let Some(interface) = self.given(argument)? {
            return Ok(interface);
        }
        let Some(container) = &self.container else {
            return Err(usage("an interface is missing (IFACE): see --help"));
        };
        let links = attachment::candidates(&mut Netlink::open()?)?;
        match &links[..] {
            [only] => Ok(only.name.clone()),
            [] => Err(Failure::new(
                66,
                format!("container {container} has no interface that is up, except loopback"),
            )),
            several => {
                let mut message = format!("container {container} has several interfaces:");
                for link in several {
                    let _ = write!(message, " {}", link.name);
                }
                let _ = write!(message, "; use --container {container}:{}", several[0].name);
                Err(usage(message))
            }
        }
    }

    /// Rejects an interface that the verb does not use.
    pub fn without_interface(&self) -> Result<(), Failure> {
        match &self.interface {
            None => Ok(()),
            Some(interface) => Err(usage(format!(
                "--container: this command takes no interface, remove \":{interface}\""
            ))),
        }
    }
}

fn own() -> Result<File, Failure> {
    Ok(File::open("/proc/thread-self/ns/net")?)
}

fn usage(message: impl Into<String>) -> Failure {
    Failure::new(EX_USAGE, message)
}
