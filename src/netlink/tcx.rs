// SPDX-License-Identifier: MIT OR Apache-2.0
use aya::programs::tc::TcAttachType;
use aya::programs::{ProgramError, SchedClassifier};

use super::{Hook, NetlinkError, OsFailure, Result};

/// A program attached by tcx: it runs before every filter of clsact and may consume packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcxProgram {
    /// Id of the program.
    pub id: u32,
    /// Name of the program.
    pub name: String,
}

/// Returns the programs in their order of execution; empty on kernels before 6.6, which have no
/// tcx.
pub fn tcx_programs(ifname: &str, hook: Hook) -> Result<Vec<TcxProgram>> {
    let attach_type = match hook {
        Hook::Egress => TcAttachType::Egress,
        Hook::Ingress => TcAttachType::Ingress,
    };
    match SchedClassifier::query_tcx(ifname, attach_type) {
        Ok((_revision, programs)) => Ok(programs
            .iter()
            .map(|p| TcxProgram {
                id: p.id(),
                name: String::from_utf8_lossy(p.name()).into_owned(),
            })
            .collect()),
        Err(err) => match errno(&err) {
            // The kernel does not support the attach type.
            libc::EINVAL => Ok(Vec::new()),
            number => Err(NetlinkError::of(OsFailure {
                attempted: format!("list tcx programs on {ifname}"),
                errno: number,
                message: if number == 0 {
                    err.to_string()
                } else {
                    String::new()
                },
            })),
        },
    }
}

fn errno(err: &ProgramError) -> i32 {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(err);
    while let Some(e) = source {
        if let Some(number) = e
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::raw_os_error)
        {
            return number;
        }
        source = e.source();
    }
    0
}
