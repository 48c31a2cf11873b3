// SPDX-License-Identifier: Apache-2.0
//! Links of emud as objects of Kubernetes: the custom resource, and the agent of a node. It runs the
//! program emud, which undoes what it does.

pub mod agent;
pub mod cgroup;
pub mod emud;
pub mod link;
pub mod plan;
pub mod profile;
mod release;
mod renew;
pub mod status;
mod tend;
pub mod watches;
