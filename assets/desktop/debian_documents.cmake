# Run by CPack on the installed files, before it packs them: the documents in the form that Debian asks for. Manual pages and changelogs
# are compressed without a date. tests/packaging/bill.py has written the copyright file, those of the packages whose headers and fonts are
# in the programs, and the bill of materials.
file(GLOB_RECURSE pages ${CPACK_TEMPORARY_DIRECTORY}/parallax*.1)
if(NOT pages)
  message(FATAL_ERROR "no manual pages below ${CPACK_TEMPORARY_DIRECTORY}: the component documents is missing")
endif()
list(GET pages 0 page)
string(REGEX REPLACE "/man/man1/.*" "" share ${page})
set(documents ${share}/doc/${CPACK_PACKAGE_NAME})
file(MAKE_DIRECTORY ${documents})
set(made ${CPACK_PARALLAX_BUILD}/package/deb)
foreach(file copyright third-party.txt bom.cdx.json)
  if(NOT EXISTS ${made}/${file})
    message(FATAL_ERROR "${made}/${file} is missing: tests/package makes it before it calls cpack")
  endif()
  file(COPY ${made}/${file} DESTINATION ${documents})
endforeach()
file(COPY ${CPACK_PARALLAX_SOURCE}/CHANGELOG.md DESTINATION ${documents})
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${documents}/changelog
     "${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n  * CHANGELOG.md.gz has what is new.\n\n"
     " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
execute_process(COMMAND gzip -9nf ${pages} ${documents}/changelog ${documents}/CHANGELOG.md ${documents}/third-party.txt COMMAND_ERROR_IS_FATAL ANY)
file(CHMOD_RECURSE ${share} FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
     DIRECTORY_PERMISSIONS ${CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS})
