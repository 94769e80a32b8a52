dnl SPDX-License-Identifier: MIT
dnl Flags are probed one by one and appended to variables of our own, so that CFLAGS and
dnl LDFLAGS stay the packager's and come last.

dnl ABX_CHECK_CFLAG(VARIABLE, FLAG): append FLAG when compiler and linker take it, with what
dnl VARIABLE has already: some flags mean nothing without another one.
AC_DEFUN([ABX_CHECK_CFLAG], [
	AS_VAR_PUSHDEF([abx_var], [abx_cv_cflag_$2])
	AC_CACHE_CHECK([whether $CC accepts $2], [abx_var], [
		abx_saved_cflags=$CFLAGS
		CFLAGS="$CFLAGS $$1 -Werror $2"
		AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <stdio.h>]], [[return puts("") < 0;]])],
			[AS_VAR_SET([abx_var], [yes])], [AS_VAR_SET([abx_var], [no])])
		CFLAGS=$abx_saved_cflags])
	AS_VAR_IF([abx_var], [yes], [$1="$$1 $2"])
	AS_VAR_POPDEF([abx_var])])

dnl ABX_CHECK_LDFLAG(VARIABLE, FLAG)
AC_DEFUN([ABX_CHECK_LDFLAG], [
	AS_VAR_PUSHDEF([abx_var], [abx_cv_ldflag_$2])
	AC_CACHE_CHECK([whether the linker accepts $2], [abx_var], [
		abx_saved_ldflags=$LDFLAGS
		LDFLAGS="$LDFLAGS $2"
		AC_LINK_IFELSE([AC_LANG_PROGRAM([[]], [[return 0;]])],
			[AS_VAR_SET([abx_var], [yes])], [AS_VAR_SET([abx_var], [no])])
		LDFLAGS=$abx_saved_ldflags])
	AS_VAR_IF([abx_var], [yes], [$1="$$1 $2"])
	AS_VAR_POPDEF([abx_var])])

AC_DEFUN([ABX_ARG_FLAGS], [
	AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [treat warnings as errors])],
		[], [enable_werror=no])
	AC_ARG_ENABLE([sanitizer], [AS_HELP_STRING([--enable-sanitizer=LIST],
		[build with -fsanitize=LIST, for example address,undefined])],
		[], [enable_sanitizer=no])
	AC_ARG_ENABLE([coverage], [AS_HELP_STRING([--enable-coverage], [build for gcov])],
		[], [enable_coverage=no])
	ABX_CFLAGS= ABX_LDFLAGS= ABX_PROVIDER_LDFLAGS=
	AC_SUBST([ABX_CFLAGS])
	AC_SUBST([ABX_LDFLAGS])
	AC_SUBST([ABX_PROVIDER_LDFLAGS])])

AC_DEFUN([ABX_LANGUAGE], [
	ABX_CHECK_CFLAG([ABX_CFLAGS], [-std=gnu17])
	ABX_CHECK_CFLAG([ABX_CFLAGS], [-fvisibility=hidden])])

AC_DEFUN([ABX_WARNINGS], [
	m4_foreach_w([abx_flag], [-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
		-Wold-style-definition -Wpointer-arith -Wundef -Wformat=2 -Wformat-nonliteral
		-Wvla -Wwrite-strings -Wcast-qual -Wimplicit-fallthrough -Wswitch-enum
		-Wlogical-op -Wduplicated-cond -Wconversion
		-Werror=implicit-function-declaration -Werror=incompatible-pointer-types
		-Werror=int-conversion -Werror=return-type -Werror=format-security],
		[ABX_CHECK_CFLAG([ABX_CFLAGS], abx_flag)])
	AS_IF([test "$enable_werror" != no], [ABX_CFLAGS="$ABX_CFLAGS -Werror"])])

AC_DEFUN([ABX_SANITIZER], [
	AS_IF([test "$enable_sanitizer" != no], [
		ABX_CFLAGS="$ABX_CFLAGS -fsanitize=$enable_sanitizer -fno-omit-frame-pointer"
		ABX_CFLAGS="$ABX_CFLAGS -fno-sanitize-recover=all"
		ABX_LDFLAGS="$ABX_LDFLAGS -fsanitize=$enable_sanitizer"])
	AS_IF([test "$enable_coverage" != no], [
		ABX_CFLAGS="$ABX_CFLAGS --coverage"
		ABX_LDFLAGS="$ABX_LDFLAGS --coverage"])])

dnl clang leaves the sanitizer runtime undefined in shared objects, so no -z defs there.
AC_DEFUN([ABX_HARDENING], [
	AS_IF([test "$enable_sanitizer" = no], [
		AS_CASE(["$CFLAGS"], [*-O0*], [], [*FORTIFY_SOURCE*], [],
			[ABX_CHECK_CFLAG([ABX_CFLAGS], [-D_FORTIFY_SOURCE=3])])
		ABX_CHECK_LDFLAG([ABX_PROVIDER_LDFLAGS], [-Wl,-z,defs])])
	m4_foreach_w([abx_flag], [-fstack-protector-strong -fstack-clash-protection
		-fcf-protection=full -ftrivial-auto-var-init=zero],
		[ABX_CHECK_CFLAG([ABX_CFLAGS], abx_flag)])
	ABX_CHECK_LDFLAG([ABX_LDFLAGS], [-Wl,-z,relro])
	ABX_CHECK_LDFLAG([ABX_LDFLAGS], [-Wl,-z,now])
	ABX_CHECK_LDFLAG([ABX_LDFLAGS], [-Wl,-z,noexecstack])
	ABX_CHECK_LDFLAG([ABX_PROVIDER_LDFLAGS], [-Wl,-z,nodelete])
	ABX_CHECK_CFLAG([ABX_PIE_CFLAGS], [-fPIE])
	ABX_CHECK_LDFLAG([ABX_PIE_LDFLAGS], [-pie])
	AC_SUBST([ABX_PIE_CFLAGS])
	AC_SUBST([ABX_PIE_LDFLAGS])])

dnl The program that stays in a box as its first process is static where it can be:
dnl smaller, and independent of the libraries of an image.
AC_DEFUN([ABX_STATIC_LIBC], [
	AC_CACHE_CHECK([for a static C library], [abx_cv_static_libc], [
		abx_saved_ldflags=$LDFLAGS
		LDFLAGS="$LDFLAGS -static"
		AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <stdio.h>]], [[return puts("") < 0;]])],
			[abx_cv_static_libc=yes], [abx_cv_static_libc=no])
		LDFLAGS=$abx_saved_ldflags])
	abx_static_libc=$abx_cv_static_libc
	AS_IF([test "$enable_sanitizer" != no], [abx_static_libc=no])
	AM_CONDITIONAL([STATIC_LIBC], [test "$abx_static_libc" = yes])])

dnl ABX_PROVIDER(NAME, DEPENDENCIES-FOUND, WHAT): --enable-provider-NAME=auto|yes|no
AC_DEFUN([ABX_PROVIDER], [
	AC_ARG_ENABLE([provider-$1], [AS_HELP_STRING([--enable-provider-$1=auto|yes|no],
		[$3 @<:@auto@:>@])], [], [enable_provider_$1=auto])
	AS_CASE([$enable_provider_$1],
		[yes], [AS_IF([test "$2" != yes],
			[AC_MSG_ERROR([provider $1: a library that it needs is missing])])],
		[no], [],
		[AS_IF([test "$2" = yes], [enable_provider_$1=yes], [enable_provider_$1=no])])
	AM_CONDITIONAL(m4_toupper([PROVIDER_$1]), [test "$enable_provider_$1" = yes])])

dnl ABX_SECCOMP_GEN: how the program is compiled that makes the system call filter of boxes.  It
dnl runs on the machine that builds, and knows the calls of all architectures.
AC_DEFUN([ABX_SECCOMP_GEN], [
	AC_ARG_VAR([CC_FOR_BUILD], [C compiler of the building machine, when cross-compiling])
	AS_CASE([$host_cpu], [x86_64|aarch64], [],
		[AC_MSG_ERROR([provider local: not made for $host_cpu yet
(x86_64 and aarch64 are; or configure with --disable-provider-local)])])
	AS_IF([test "$cross_compiling" != yes], [
		PKG_CHECK_MODULES([SECCOMP], [libseccomp >= 2.5])
		SECCOMP_GEN_CC='$(CC) $(ABX_CFLAGS) $(CFLAGS) $(ABX_LDFLAGS) $(LDFLAGS)'
	], [
		AC_ARG_VAR([SECCOMP_CFLAGS], [flags for libseccomp of the building machine])
		AC_ARG_VAR([SECCOMP_LIBS], [the same for its linker @<:@-lseccomp@:>@])
		: "${SECCOMP_LIBS:=-lseccomp}"
		SECCOMP_GEN_CC='$(CC_FOR_BUILD)'
		AC_MSG_CHECKING([for libseccomp of the building machine])
		AS_ECHO(['#include <seccomp.h>']) >conftest-build.c
		AS_ECHO(['int main(void) { seccomp_release(seccomp_init(SCMP_ACT_ALLOW)); return 0; }']) \
			>>conftest-build.c
		AS_IF([test -n "$CC_FOR_BUILD" && $CC_FOR_BUILD $SECCOMP_CFLAGS -o conftest-build \
			conftest-build.c $SECCOMP_LIBS >&AS_MESSAGE_LOG_FD 2>&1 &&
			./conftest-build], [AC_MSG_RESULT([yes])], [
			AC_MSG_RESULT([no])
			AC_MSG_ERROR([cross-compiling: the filter of system calls is made while
building. Set CC_FOR_BUILD to a compiler of this machine, and install libseccomp-dev for this
machine (or set SECCOMP_CFLAGS and SECCOMP_LIBS; or configure with --disable-provider-local)])])
		rm -f conftest-build conftest-build.c])
	AC_SUBST([SECCOMP_GEN_CC])])
