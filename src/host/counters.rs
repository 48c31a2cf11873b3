// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel counts of the whole host. Readers of the texts of /proc.

/// Returns bytes of a line of /proc/meminfo, such as "MemTotal"; none: there is no such line.
pub fn memory_bytes(meminfo: &str, key: &str) -> Option<u64> {
    let mut lines = meminfo.lines().filter_map(|line| line.split_once(':'));
    let (_, amount) = lines.find(|(name, _)| *name == key)?;
    let kib: u64 = amount.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory() {
        let info = "MemTotal:        8039816 kB\nMemFree: 1 kB\nMemAvailable:    5123 kB\nHugePages_Total:       4\n";
        assert_eq!(memory_bytes(info, "MemTotal"), Some(8_039_816 << 10));
        assert_eq!(memory_bytes(info, "MemAvailable"), Some(5123 << 10));
        // Neither the beginning of a name, nor a number without a unit.
        for key in ["Mem", "SwapFree", "HugePages_Total"] {
            assert_eq!(memory_bytes(info, key), None, "{key}");
        }
        assert_eq!(
            memory_bytes("MemTotal: 99999999999999999999 kB", "MemTotal"),
            None
        );
    }
}
