# Run by CPack on the installed files, before it packs them: the documents in the form that Debian asks for. Manual pages and changelogs
# are compressed without a date; the copyright file is followed by those of the packages whose headers and fonts are in the programs
# (tests/packaging/bill.py makes the list).
file(GLOB_RECURSE pages ${CPACK_TEMPORARY_DIRECTORY}/parallax*.1)
if(NOT pages)
  message(FATAL_ERROR "no manual pages below ${CPACK_TEMPORARY_DIRECTORY}: the component documents is missing")
endif()
list(GET pages 0 page)
string(REGEX REPLACE "/man/man1/.*" "" share ${page})
set(documents ${share}/doc/${CPACK_PACKAGE_NAME})
file(MAKE_DIRECTORY ${documents})
file(COPY_FILE ${CPACK_PARALLAX_SOURCE}/CHANGELOG.md ${documents}/changelog)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(version ${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
file(WRITE ${documents}/changelog.Debian
     "${CPACK_PACKAGE_NAME} (${version}) unstable; urgency=medium\n\n  * Packaged by CPack; the changelog next to this one has the changes.\n\n"
     " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
execute_process(COMMAND gzip -9nf ${pages} ${documents}/changelog ${documents}/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)

set(made ${CPACK_PARALLAX_BUILD}/package/deb)
foreach(file copyright bom.cdx.json)
  if(NOT EXISTS ${made}/${file})
    message(FATAL_ERROR "${made}/${file} is missing: tests/package makes it before it calls cpack")
  endif()
  file(COPY ${made}/${file} DESTINATION ${documents} FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endforeach()
file(CHMOD_RECURSE ${share} FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
     DIRECTORY_PERMISSIONS ${CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS})
