// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `emud fleet` and `emud agent` have in common: where etcd is, and how they talk to the user.

use std::io::Write;
use std::path::PathBuf;

use emud::fleet::etcd::{Access, Client};
use emud::fleet::keys::Keys;
use emud::text::printable;

use super::Failure;
use super::failure::EX_USAGE;

/// Where the store is.
#[derive(Debug, clap::Args)]
pub struct Store {
    /// URLs of the members of etcd
    #[arg(long, value_name = "URL[,URL]", value_delimiter = ',', required = true)]
    pub etcd: Vec<String>,

    /// Name of the fleet: agents and runs of other names are independent
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub fleet: String,

    /// Certificates that may sign those of etcd (PEM)
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// Own certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,

    /// Key of the own certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// User of etcd
    #[arg(long, value_name = "NAME", requires = "etcd_password")]
    etcd_user: Option<String>,

    /// File with the password of that user
    #[arg(long, value_name = "FILE", requires = "etcd_user")]
    etcd_password: Option<PathBuf>,
}

impl Store {
    pub fn access(&self) -> Result<Access, Failure> {
        let password = |path: &PathBuf| {
            let read = std::fs::read_to_string(path);
            read.map_err(|e| {
                let message = format!("--etcd-password {}: {e}", path.display());
                Failure::new(EX_USAGE, message)
            })
        };
        let password = self.etcd_password.as_ref().map(password).transpose()?;
        let password = password.map(|text| text.trim_end_matches('\n').to_owned());
        Ok(Access {
            urls: self.etcd.clone(),
            ca: self.ca.clone(),
            cert: self.cert.clone(),
            key: self.key.clone(),
            user: self.etcd_user.clone().zip(password),
        })
    }

    pub fn client(&self) -> Result<(Client, Keys), Failure> {
        Ok((Client::new(&self.access()?)?, Keys::new(&self.fleet)))
    }
}

/// Prints a sentence for the user, which may come from another host.
pub fn say(text: &str) {
    // The terminal may be gone.
    let _ = writeln!(std::io::stderr(), "emud: {}", printable(text));
}
