#!/bin/sh
# Makes and enters a minimal system of the release that runs here, in the folder ROOT. CACHE keeps what was downloaded.
#   clean_system.sh make ROOT CACHE              exit code 77, and the reason, where that cannot be
#   clean_system.sh enter ROOT CACHE COMMAND     runs the command of a shell there as root, in root's folder
#   clean_system.sh nobody ROOT CACHE COMMAND    the same as the user nobody, where nothing can be written
set -eu
mode=$1 root=$2 cache=$3
cannot() { echo "$1"; exit 77; }

case $mode in
  make)
    [ "$(id -u)" = 0 ] || cannot 'it needs root'
    command -v debootstrap >/dev/null || cannot 'debootstrap is not installed'
    unshare --mount true 2>/dev/null || cannot 'file systems cannot be mounted here'
    . /etc/os-release
    case $ID in
      debian | ubuntu) ;;
      *) cannot "this is $ID, not Debian or Ubuntu" ;;
    esac
    # The release's own archives, from where this machine has them.
    sources=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' | sort -u \
      | grep -E " $VERSION_CODENAME(-updates|-security)? (main|universe)\$") || cannot 'apt has no list of packages'
    mirror=$(echo "$sources" | awk -v release="$VERSION_CODENAME" '$3 == release { print $2; exit }')
    mkdir -p "$cache/archives"
    if [ ! -f "$cache/$VERSION_CODENAME.tar" ]; then
      rm -rf "$root"
      debootstrap --variant=minbase "$VERSION_CODENAME" "$root" "$mirror" >"$cache/debootstrap.log" 2>&1 \
        || cannot "debootstrap: $(tail -n 1 "$cache/debootstrap.log")"
      echo "$sources" >"$root/etc/apt/sources.list"
      rm -f "$root"/var/cache/apt/archives/*.deb
      tar -C "$root" -cf "$cache/part.tar" .
      mv "$cache/part.tar" "$cache/$VERSION_CODENAME.tar"
    fi
    rm -rf "$root"
    mkdir -p "$root"
    tar -C "$root" -xf "$cache/$VERSION_CODENAME.tar"
    "$0" enter "$root" "$cache" 'apt-get update' >"$cache/update.log" 2>&1 \
      || cannot "the system has no packages: $(tail -n 1 "$cache/update.log")"
    ;;
  enter | nobody)
    export mode root cache command="$4"
    exec unshare --mount sh -ec '
      mount -t proc proc "$root/proc"
      mount --bind "$cache/archives" "$root/var/cache/apt/archives"
      user=root
      if [ "$mode" = nobody ]; then
        user=nobody
        mount --bind "$root" "$root"
        mount -t proc proc "$root/proc"
        mount -o remount,bind,ro "$root"
      fi
      cd /
      exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive RELAXC_CACHE= \
        ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
        chroot --userspec="$user" "$root" /bin/sh -c "$command"'
    ;;
esac
