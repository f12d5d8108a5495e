#!/usr/bin/env bash
# Signs dist/Plimsoll.app, packs it as a disk image and has it notarised.
#   PLIMSOLL_IDENTITY   "Developer ID Application: ..." from the keychain; without it the program is
#                       signed for this machine alone ("-"), and Gatekeeper asks elsewhere.
#   PLIMSOLL_NOTARY     name of a notarytool profile (xcrun notarytool store-credentials);
#                       without it nothing is sent to Apple.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
version=$1
app=dist/Plimsoll.app
image=dist/Plimsoll-$version-$(uname -m).dmg
identity=${PLIMSOLL_IDENTITY:--}

# Inside first: a signature covers what it encloses. The binaries of frameworks bear no suffix.
find "$app/Contents" -type f -print0 |
    while IFS= read -r -d '' file; do
        case $(file -b "$file") in Mach-O*) printf '%s\0' "$file" ;; esac
    done |
    xargs -0 codesign --force --timestamp --options runtime --sign "$identity"
codesign --force --timestamp --options runtime --entitlements packaging/macos/entitlements.plist \
    --sign "$identity" "$app"
codesign --verify --deep --strict "$app"

rm -f "$image"
hdiutil create -volname Plimsoll -srcfolder "$app" -ov -format UDZO "$image"
if [ "$identity" != - ]; then
    codesign --timestamp --sign "$identity" "$image"
fi
if [ -n "${PLIMSOLL_NOTARY-}" ]; then
    xcrun notarytool submit "$image" --keychain-profile "$PLIMSOLL_NOTARY" --wait
    xcrun stapler staple "$image"
fi
