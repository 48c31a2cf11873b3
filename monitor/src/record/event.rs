// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a recording holds, as typed events.

use crate::criteria::table::{Word as _, words};

/// A recorded event. Times are ns of CLOCK_MONOTONIC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A CPU was busy without idle.
    CpuBusy {
        /// Number of the CPU.
        cpu: u16,
        /// The busy interval.
        interval: Interval,
    },
    /// A driver accepted a packet.
    Packet {
        /// Time at which the driver accepted the packet.
        time_ns: u64,
        /// Length as the kernel counts it: a packet that is segmented later counts without the
        /// headers that segmenting adds.
        bytes: u32,
        /// Index of the device in its network namespace.
        ifindex: u32,
        /// Inode number of the network namespace.
        netns: u32,
        /// Class of the device.
        class: NetClass,
    },
    /// Pages read from swap.
    PageIn {
        /// Time of the read.
        time_ns: u64,
        /// Number of pages.
        pages: u32,
    },
    /// Pages written to swap.
    PageOut {
        /// Time of the write.
        time_ns: u64,
        /// Number of pages.
        pages: u32,
    },
    /// A block device always had a request; `device` is its dev_t (major << 20 | minor).
    DiskBusy {
        /// Device number.
        device: u32,
        /// The interval with requests.
        interval: Interval,
    },
    /// Name of a network device, written before its first packet.
    Interface {
        /// Index of the device in its network namespace.
        ifindex: u32,
        /// Inode number of the network namespace.
        netns: u32,
        /// Name of the device.
        name: String,
    },
    /// Name of a block device (the first 16 bytes), written before its first interval.
    Disk {
        /// Device number.
        device: u32,
        /// Name of the device.
        name: String,
    },
    /// Number of records lost until this time, since the previous such record.
    Lost {
        /// Time until which the records were lost.
        time_ns: u64,
        /// Kind of the lost records.
        kind: Kind,
        /// Number of lost records.
        count: u64,
    },
}

/// A busy interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// Start of the interval, ns of CLOCK_MONOTONIC.
    pub begin_ns: u64,
    /// End of the interval, ns of CLOCK_MONOTONIC.
    pub end_ns: u64,
    /// Whether it may have begun earlier, because the recording began in the middle of it.
    pub open_begin: bool,
    /// Whether the recording ended in the middle of it.
    pub open_end: bool,
}

impl Interval {
    /// Returns the duration; of an interval that is open at either end, the shortest possible one.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }

    /// Returns whether the interval is open at either end.
    pub fn is_open(&self) -> bool {
        self.open_begin || self.open_end
    }
}

/// Class of a network device, guessed from its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetClass {
    /// Hardware behind it, as far as the kernel shows.
    External,
    /// veth, bridge, tun, loopback, ...
    Internal,
}

words! {
    /// Kind of a record, used for counts.
    #[derive(PartialOrd, Ord, Hash)]
    Kind {
        /// [`Event::CpuBusy`].
        CpuBusy = "cpu-busy",
        /// [`Event::Packet`].
        Packet = "packet",
        /// [`Event::PageIn`].
        PageIn = "page-in",
        /// [`Event::PageOut`].
        PageOut = "page-out",
        /// [`Event::DiskBusy`].
        DiskBusy = "disk-busy",
        /// [`Event::Interface`].
        Interface = "interface",
        /// [`Event::Disk`].
        Disk = "disk",
        /// [`Event::Lost`].
        Lost = "lost",
    }
}

impl Kind {
    /// Returns the name of the kind.
    pub fn name(self) -> &'static str {
        self.word()
    }
}

impl Event {
    /// Returns the kind of the event's record.
    pub fn kind(&self) -> Kind {
        match self {
            Self::CpuBusy { .. } => Kind::CpuBusy,
            Self::Packet { .. } => Kind::Packet,
            Self::PageIn { .. } => Kind::PageIn,
            Self::PageOut { .. } => Kind::PageOut,
            Self::DiskBusy { .. } => Kind::DiskBusy,
            Self::Interface { .. } => Kind::Interface,
            Self::Disk { .. } => Kind::Disk,
            Self::Lost { .. } => Kind::Lost,
        }
    }
}
