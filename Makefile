# SPDX-License-Identifier: MIT OR Apache-2.0

# A shell without HOME, or without the PATH of a login, is enough.
export HOME ?= $(shell getent passwd "$$(id -u)" | cut -d : -f 6)
export PATH := $(PATH):$(HOME)/.cargo/bin:/usr/sbin:/sbin

PREFIX ?= /usr/local
DESTDIR ?=
# A recipe would take a name with a space for two.
ifneq ($(words x$(DESTDIR)$(PREFIX)x),1)
$(error DESTDIR and PREFIX must not contain spaces)
endif
BIN := $(DESTDIR)$(PREFIX)/bin
SHARE := $(DESTDIR)$(PREFIX)/share
DOC := $(SHARE)/doc/emud
UNITS := $(DESTDIR)$(PREFIX)/lib/systemd/system
RULES := $(DESTDIR)$(PREFIX)/lib/udev/rules.d/90-emud.rules
EMUD := target/release/emud

# A recipe's tests follow one another; cargo itself uses all CPUs.
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help demo demo-fleet check test test-full bench bench-full bench-docs bench-check build dist install uninstall clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

demo: ## two links between namespaces, a table of requested against measured, in 90 s (root)
	@tests/setup.sh demo
	cargo build --locked
	@tests/demo.sh target/debug/emud

demo-fleet: ## three network namespaces as hosts, with etcd: requested against measured, in 40 s (root)
	@tests/setup.sh fleet
	cargo build --locked
	@tests/demo-fleet.sh target/debug/emud

check: ## format, lints, docs, dependencies, tests without root
	@tests/setup.sh check
	@tests/check.sh

test: ## all tests, here and in guest kernels 6.1 and 7.2, within 10 minutes (root)
	@tests/setup.sh test
	@tests/run.sh

test-full: ## the same with all statistics and timings, also on kernel 6.12: hours (root)
	@tests/setup.sh full
	@tests/run.sh --full

bench: ## emud beside stock netem in guest kernels, under 10 minutes: target/bench/report.md (root)
	@tests/setup.sh bench
	@benches/run.sh

bench-full: ## the same with all cases, about an hour (root)
	@tests/setup.sh bench
	@benches/run.sh --full

bench-docs: ## put the figures of the last `make bench-full` into docs/benchmarks.md
	@cargo run --locked --release -q -p emud-benches --bin suite -- report --docs docs/benchmarks.md $(OPTIONS)

bench-check: ## instruction counts of the last run against the committed ones
	@cargo run --locked --release -q -p emud-benches --bin suite -- check

build: ## target/release/emud
	@tests/setup.sh build
	cargo build --release --locked

dist: ## a static binary, a Debian package, an image and crates: target/dist, each tried (root)
	@tests/setup.sh dist
	@packaging/dist.sh

install: ## the binary, man pages, completions, docs and units under PREFIX (/usr/local), after `make build`
	@test -x $(EMUD) || { echo 'run `make build` first' >&2; exit 1; }
	install -D -m 755 $(EMUD) $(BIN)/emud
	install -d $(SHARE)/man/man1 $(SHARE)/man/man5
	$(EMUD) man $(SHARE)/man/man1
	$(EMUD) man --section 5 $(SHARE)/man/man5
	install -d $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions
	install -d $(SHARE)/fish/vendor_completions.d
	$(EMUD) completions bash >$(SHARE)/bash-completion/completions/emud
	$(EMUD) completions zsh >$(SHARE)/zsh/site-functions/_emud
	$(EMUD) completions fish >$(SHARE)/fish/vendor_completions.d/emud.fish
	install -d $(DOC)/docs $(DOC)/contrib
	install -d $(DOC)/LICENSES
	install -m 644 README.md CHANGELOG.md LICENSE $(DOC)
	install -m 644 LICENSES/* $(DOC)/LICENSES
	install -m 644 docs/*.md docs/*.json docs/*.svg src/monitor/settings/shared.toml $(DOC)/docs
	cp -r contrib/* $(DOC)/contrib
	install -d $(UNITS)
	for unit in packaging/*.service; do sed 's,/usr/bin/emud,$(PREFIX)/bin/emud,' $$unit >$(UNITS)/$${unit#*/} || exit; done
	install -D -m 644 packaging/90-emud.rules $(RULES)
# A user whose PREFIX is in the home folder goes without.
	install -d $(DESTDIR)/etc/emud || [ "$$(id -u)" != 0 ]

uninstall: ## what `make install` put there
	rm -f $(BIN)/emud $(SHARE)/man/man1/emud.1 $(SHARE)/man/man1/emud-*.1 $(SHARE)/man/man5/emud-*.5 $(RULES)
	rm -f $(patsubst packaging/%,$(UNITS)/%,$(wildcard packaging/*.service))
	rm -rf $(DOC)
	rm -f $(SHARE)/bash-completion/completions/emud $(SHARE)/zsh/site-functions/_emud
	rm -f $(SHARE)/fish/vendor_completions.d/emud.fish
	rmdir $(DESTDIR)/etc/emud 2>/dev/null || true

clean: ## everything built or fetched, guest kernels included
	rm -rf target
