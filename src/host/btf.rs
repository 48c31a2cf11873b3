// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the running kernel keeps a field of a structure, and the numbers of types and functions, from its
//! type information (BTF).
//!
//! Reads the types in order and keeps none. The loader of aya builds all 150,000 of them for its
//! relocations, which took two thirds of the time of an attach; the classifier needs a few fields.

use std::sync::LazyLock;

/// The type information of the running kernel.
pub(crate) const KERNEL: &str = "/sys/kernel/btf/vmlinux";

/// Offsets of fields in bits, and numbers; `None` if the kernel has no type information, or none of that name.
pub(crate) struct Fields {
    /// `sk_buff.users`.
    pub(crate) users: Option<u32>,
    /// `sock.sk_sndbuf`.
    pub(crate) sndbuf: Option<u32>,
    /// `sock.sk_wmem_alloc`.
    pub(crate) wmem: Option<u32>,
    /// `sock.sk_protocol`.
    pub(crate) protocol: Option<u32>,
    /// `sock.sk_kern_sock`.
    pub(crate) kernel_sock: Option<u32>,
    /// Of what the kernel makes of `Qdisc_ops` for BPF, if it has BPF qdiscs.
    pub(crate) qdisc_ops: Option<u32>,
    /// Number of the type `sock`.
    pub(crate) sock: Option<u32>,
    /// Number of the function `bpf_rdonly_cast`.
    pub(crate) rdonly_cast: Option<u32>,
}

/// The fields of the running kernel, read once: 7 MB in pieces of a page.
pub(crate) static FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    let wanted = [
        Wanted::Field("sk_buff", "users"),
        Wanted::Field("sock", "sk_sndbuf"),
        Wanted::Field("sock", "sk_wmem_alloc"),
        Wanted::Field("sock", "sk_protocol"),
        Wanted::Field("sock", "sk_kern_sock"),
        Wanted::Field("bpf_struct_ops_Qdisc_ops", "data"),
        Wanted::Structure("sock"),
        Wanted::Function("bpf_rdonly_cast"),
    ];
    let btf = std::fs::read(KERNEL).unwrap_or_default();
    let [
        users,
        sndbuf,
        wmem,
        protocol,
        kernel_sock,
        qdisc_ops,
        sock,
        rdonly_cast,
    ] = find(&btf, wanted);
    // Programs that call functions of the kernel need the compiler, which few kernels can do without.
    // Other network namespaces do not have the setting.
    let is_interpreted =
        std::fs::read("/proc/sys/net/core/bpf_jit_enable").is_ok_and(|on| on == b"0\n");
    let rdonly_cast = rdonly_cast.filter(|_| !is_interpreted);
    Fields {
        users,
        sndbuf,
        wmem,
        protocol,
        kernel_sock,
        qdisc_ops,
        sock,
        rdonly_cast,
    }
});

const MAGIC: u16 = 0xeb9f;
const STRUCT: u32 = 4;
const FUNCTION: u32 = 12;

#[derive(Clone, Copy)]
enum Wanted<'a> {
    /// The offset of a field of a structure.
    Field(&'a str, &'a str),
    /// The number of the type.
    Structure(&'a str),
    /// Its number.
    Function(&'a str),
}

fn find<const N: usize>(btf: &[u8], wanted: [Wanted; N]) -> [Option<u32>; N] {
    let mut found = [None; N];
    // What was found before an end that makes no sense is right.
    let _ = search(btf, wanted, &mut found);
    found
}

fn search<const N: usize>(
    btf: &[u8],
    wanted: [Wanted; N],
    found: &mut [Option<u32>; N],
) -> Option<()> {
    // struct btf_header of linux/btf.h, in the byte order of this machine.
    let magic = u16::from_ne_bytes(btf.get(..2)?.try_into().ok()?);
    let body = btf.get(word(btf, 4)? as usize..)?;
    let types = section(body, word(btf, 8)?, word(btf, 12)?)?;
    let strings = section(body, word(btf, 16)?, word(btf, 20)?)?;
    if magic != MAGIC {
        return None;
    }
    let named = |at: u32, name: &str| {
        strings.get(at as usize..).is_some_and(|s| {
            s.strip_prefix(name.as_bytes())
                .is_some_and(|rest| rest.first() == Some(&0))
        })
    };
    // All of it is in numbers of 32 bits.
    let (types, _) = types.as_chunks();
    let number = |at: usize| types.get(at).copied().map(u32::from_ne_bytes);
    let (mut at, mut id) = (0, 0);
    while at < types.len() {
        let (name, info) = (number(at)?, number(at + 1)?);
        let (kind, members) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
        at += 3;
        id += 1;
        if kind == STRUCT || kind == FUNCTION {
            let offset = |field: &str| {
                let mut fields = (0..members).map(|i| at + 3 * i);
                let field = fields.find(|&f| number(f).is_some_and(|n| named(n, field)))?;
                let bits = number(field + 2)?;
                // The upper eight bits are the width of a bit field, if the structure has any.
                Some(if info >> 31 == 1 {
                    bits & 0xff_ffff
                } else {
                    bits
                })
            };
            for (found, wanted) in found.iter_mut().zip(wanted) {
                *found = found.or_else(|| match wanted {
                    Wanted::Field(of, field) if kind == STRUCT && named(name, of) => offset(field),
                    Wanted::Structure(of) if kind == STRUCT && named(name, of) => Some(id),
                    Wanted::Function(of) if kind == FUNCTION && named(name, of) => Some(id),
                    _ => None,
                });
            }
            if found.iter().all(Option::is_some) {
                return Some(());
            }
        }
        at += extra(kind, members)?;
    }
    None
}

/// Returns the number of 32-bit numbers of a type after its first three; `None` for a kind this does not know.
fn extra(kind: u32, members: usize) -> Option<usize> {
    match kind {
        1 | 14 | 17 => Some(1),               // int, variable, tag of a declaration
        2 | 7..=12 | 16 | 18 => Some(0),      // pointer, forward .. function, float, tag of a type
        3 => Some(3),                         // array
        4 | 5 | 15 | 19 => Some(members * 3), // struct, union, section, enum64
        6 | 13 => Some(members * 2),          // enum, prototype
        _ => None,
    }
}

fn section(body: &[u8], start: u32, length: u32) -> Option<&[u8]> {
    body.get(start as usize..)?.get(..length as usize)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an int, two structures, of which the second has a bit field, and a function.
    fn sample() -> Vec<u8> {
        let strings = b"\0int\0sk_buff\0sk_buff_head\0users\0len\0";
        let at = |name: &str| {
            let wanted = [b"\0", name.as_bytes(), b"\0"].concat();
            let found = strings.windows(wanted.len()).position(|w| w == wanted);
            found.unwrap() as u32 + 1
        };
        let words = [
            [at("int"), 1 << 24, 4, 32].as_slice(),
            &[at("sk_buff_head"), 4 << 24 | 1, 8, at("users"), 1, 0],
            &[at("sk_buff"), 1 << 31 | 4 << 24 | 2, 300],
            &[at("len"), 1, 3 << 24 | 8],
            &[at("users"), 1, 228 * 8],
            &[at("users"), 12 << 24, 1],
        ]
        .concat();
        let header = [
            24,
            0,
            4 * words.len() as u32,
            4 * words.len() as u32,
            strings.len() as u32,
        ];
        let mut btf = u32::from(MAGIC).to_ne_bytes().to_vec();
        for word in header.iter().chain(&words) {
            btf.extend(word.to_ne_bytes());
        }
        btf.extend(strings);
        btf
    }

    #[test]
    fn finds_a_field() {
        let btf = sample();
        let offset = |btf: &[u8], of, field| find(btf, [Wanted::Field(of, field)])[0];
        assert_eq!(offset(&btf, "sk_buff", "users"), Some(228 * 8));
        assert_eq!(offset(&btf, "sk_buff", "len"), Some(8));
        assert_eq!(offset(&btf, "sk_buff_head", "users"), Some(0));
        assert_eq!(offset(&btf, "sk_buff", "user"), None);
        assert_eq!(offset(&btf, "sk", "users"), None);
        let all = [
            Wanted::Field("sk_buff", "users"),
            Wanted::Field("no", "such"),
            Wanted::Field("sk_buff_head", "users"),
            Wanted::Structure("sk_buff"),
            Wanted::Function("sk_buff"),
            Wanted::Structure("users"),
            Wanted::Function("users"),
        ];
        let found = [Some(228 * 8), None, Some(0), Some(3), None, None, Some(4)];
        assert_eq!(find(&btf, all), found);
    }

    #[test]
    fn nothing_is_found_in_half_a_file() {
        let btf = sample();
        for length in 0..btf.len() {
            let found = find(&btf[..length], [Wanted::Field("sk_buff", "users")]);
            assert_eq!(found, [None], "{length}");
        }
    }

    #[test]
    fn finds_the_field_of_this_kernel() {
        if std::path::Path::new(KERNEL).exists() {
            let Fields {
                users: Some(users),
                sndbuf: Some(sndbuf),
                wmem: Some(wmem),
                kernel_sock: Some(kern),
                ..
            } = *FIELDS
            else {
                panic!("a field is missing");
            };
            assert_ne!(sndbuf, wmem);
            assert_ne!(kern / 8, wmem / 8);
            // Behind the packet's pointers, within the structure; tests/kernel read it.
            assert!(
                (64 * 8..512 * 8).contains(&users) && users.is_multiple_of(32),
                "{users}"
            );
        }
    }
}
